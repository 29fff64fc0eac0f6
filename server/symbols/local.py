# SPDX-License-Identifier: Apache-2.0
"""Finds the very files that ran on the server's own disk: the binary at its path, and its debug file in the configured roots.

For the host that server and agent share. A path is only a hint: a file counts when size, build id and content hash are those
the agent saw. Debug files are looked for by build id, then by the binary's .gnu_debuglink, inside the roots only.
"""

import hashlib
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from emberwatch.v1 import batch_pb2 as pb
from server.store.protocol import BinaryInfo
from server.symbols.debug_links import open_by_build_id, open_by_debug_link, probe_or_none
from server.symbols.rooted import open_regular
from server.symbols.sources import Origin, Source

MAX_TABLE_BYTES = 64 << 10
MAX_HASHED_BYTES = 1 << 20
PT_LOAD, PF_X = 1, 1


def open_sources(binary: BinaryInfo, debug_roots: Sequence[Path]) -> list[Source]:
    """The binary's own file, if it is here, and its debug file, if there is one; the caller closes them."""
    running = _open_running_file(binary)
    found = [] if running is None else [Source(Origin.RUNNING_FILE, running)]
    debug = open_by_build_id(binary.build_id_kind, binary.build_id, debug_roots)
    if debug is None and running is not None:
        seen = probe_or_none(running)
        if seen is not None and seen.debug_link is not None:
            debug = open_by_debug_link(running, seen.debug_link, binary.path, debug_roots)
    return found if debug is None else [*found, Source(Origin.DEBUG_ROOT, debug)]


def content_hash(descriptor: int) -> bytes:
    """The content hash of a file, as batch.proto defines it and the agent takes it.

    BLAKE2b-128 over program headers as read, size as u64 LE, first MiB of executable segments in file order; where there is no
    executable segment, the first MiB of the file stands for them.
    """
    size = os.fstat(descriptor).st_size
    raw, layout = _program_headers(descriptor, os.pread(descriptor, 64, 0))
    digest = hashlib.blake2b(raw + struct.pack("<Q", size), digest_size=16)
    left = MAX_HASHED_BYTES
    for offset, length in _code_ranges(raw, layout) or [(0, size)]:
        place, end = offset, min(offset + length, offset + left, size)
        while place < end and (piece := os.pread(descriptor, min(end - place, MAX_TABLE_BYTES), place)):
            digest.update(piece)
            place += len(piece)
            left -= len(piece)
    return digest.digest()


def _open_running_file(binary: BinaryInfo) -> int | None:
    if binary.kind != pb.BINARY_KIND_ELF or not binary.path.startswith(b"/") or b"\0" in binary.path:
        return None
    descriptor = open_regular(Path(os.fsdecode(binary.path)))
    if descriptor is None:
        return None
    try:
        if os.fstat(descriptor).st_size == binary.size_bytes and content_hash(descriptor) == binary.content_hash:
            return descriptor
    except OSError:
        pass  # It went away or cannot be read: as if it were not here.
    os.close(descriptor)
    return None


def _program_headers(descriptor: int, header: bytes) -> tuple[bytes, struct.Struct]:
    """The program headers as they lie in the file, cut to whole entries and 64 KiB, and their layout; b"" when there are none."""
    if len(header) < 64 or header[:4] != b"\x7fELF" or header[4] not in (1, 2) or header[5] not in (1, 2):
        return b"", struct.Struct("<8I")
    is_64, order = header[4] == 2, "<" if header[5] == 1 else ">"
    layout = struct.Struct(order + ("IIQQQQQQ" if is_64 else "IIIIIIII"))
    (start,) = struct.unpack_from(order + ("Q" if is_64 else "I"), header, 32 if is_64 else 28)
    entry_bytes, count = struct.unpack_from(order + "HH", header, 54 if is_64 else 42)
    if entry_bytes != layout.size or count in (0, 0xFFFF) or start >= 1 << 63:
        return b"", layout
    raw = os.pread(descriptor, min(count * layout.size, MAX_TABLE_BYTES // layout.size * layout.size), start)
    return raw[: len(raw) // layout.size * layout.size], layout


def _code_ranges(raw: bytes, layout: struct.Struct) -> list[tuple[int, int]]:
    found = []
    for fields in layout.iter_unpack(raw):
        is_64 = layout.size == 56
        flags, offset = (fields[1], fields[2]) if is_64 else (fields[6], fields[1])
        length = fields[5] if is_64 else fields[4]
        if fields[0] == PT_LOAD and flags & PF_X and length:
            found.append((offset, length))
    return found
