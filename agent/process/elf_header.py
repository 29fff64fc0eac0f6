# SPDX-License-Identifier: Apache-2.0
"""Reads the identity of an ELF file: program headers, build id notes, hash of its content.

The file is untrusted and may change while it is read. Every read is a capped pread through `read`; nothing is mapped, nothing is
followed further than two steps, and whatever is odd ends as "no build id" or as None, never as an exception.
Layouts: ELF gABI, "ELF Header" and "Program Header".
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.records.binary import BinaryId, Segment
from agent.records.build_id import build_id_from_notes
from emberwatch.v1 import batch_pb2 as pb

Read = Callable[[int, int], bytes]
"""read(offset, size) gives at most `size` bytes, fewer at the end of the file, none where it cannot read."""

MAX_READ_BYTES = 64 << 10
MAX_HASHED_BYTES = 1 << 20
_MAX_NOTE_SEGMENTS = 16
_MAGIC = b"\x7fELF"
_PT_LOAD, _PT_NOTE = 1, 4
_PF_X = 1
_MAX_OFFSET = 1 << 63


@dataclass(frozen=True, slots=True)
class ElfIdentity:
    """Who a file is."""

    id: BinaryId
    segments: tuple[Segment, ...]
    """PT_LOAD in file order."""


@dataclass(frozen=True, slots=True)
class _ProgramHeader:
    kind: int
    segment: Segment
    alignment: int


def read_identity(read: Read, size_bytes: int) -> ElfIdentity:
    """Identify the file of `size_bytes` bytes behind `read`. A file that is no ELF file has no segments and no build id.

    Content hash: BLAKE2b-128 over program headers as read, size as u64 LE, first MiB of executable segments (batch.proto). Where there is
    no executable segment, the first MiB of the file stands for them, so that two files of one size stay apart.
    """
    header = read(0, 64)
    raw, order, is_64 = _program_header_bytes(read, header)
    headers = tuple(_program_headers(raw, order, is_64))
    segments = tuple(h.segment for h in headers if h.kind == _PT_LOAD)
    kind, build_id = _build_id(read, headers, order)
    return ElfIdentity(BinaryId(kind, build_id, _content_hash(read, raw, size_bytes, segments)), segments)


def _program_header_bytes(read: Read, header: bytes) -> tuple[bytes, str, bool]:
    """The table as it lies in the file, cut to whole entries and 64 KiB; b"" when there is none."""
    nothing = (b"", "<", True)
    if len(header) < 64 or header[:4] != _MAGIC or header[4] not in (1, 2) or header[5] not in (1, 2):
        return nothing
    is_64, order = header[4] == 2, "<" if header[5] == 1 else ">"
    table_at = struct.unpack_from(order + ("Q" if is_64 else "I"), header, 32 if is_64 else 28)[0]
    entry_bytes, count = struct.unpack_from(order + "HH", header, 54 if is_64 else 42)
    expected = 56 if is_64 else 32
    if entry_bytes != expected or count in (0, 0xFFFF) or table_at >= _MAX_OFFSET:
        return nothing
    raw = read(table_at, min(count * expected, MAX_READ_BYTES // expected * expected))
    return raw[: len(raw) // expected * expected], order, is_64


def _program_headers(raw: bytes, order: str, is_64: bool) -> Iterator[_ProgramHeader]:
    for entry in struct.iter_unpack(order + ("IIQQQQQQ" if is_64 else "IIIIIIII"), raw):
        if is_64:
            kind, flags, offset, vaddr, _, file_size, memory_size, alignment = entry
        else:
            kind, offset, vaddr, _, file_size, memory_size, flags, alignment = entry
        yield _ProgramHeader(kind, Segment(offset, vaddr, file_size, memory_size, flags), alignment)


def _build_id(read: Read, headers: tuple[_ProgramHeader, ...], order: str) -> tuple[pb.BuildIdKind, bytes]:
    go = b""
    for header in [h for h in headers if h.kind == _PT_NOTE][:_MAX_NOTE_SEGMENTS]:
        if header.segment.offset >= _MAX_OFFSET:
            continue
        notes = read(header.segment.offset, min(header.segment.file_size_bytes, MAX_READ_BYTES))
        # Linkers have put notes padded to 4 and to 8 bytes into one segment: try the other padding before giving up.
        for alignment in (header.alignment, 4 if header.alignment == 8 else 8):
            kind, build_id = build_id_from_notes(notes, alignment, order)
            if kind == pb.BUILD_ID_KIND_GNU:
                return kind, build_id
            if kind == pb.BUILD_ID_KIND_GO:
                go = go or build_id
    return (pb.BUILD_ID_KIND_GO, go) if go else (pb.BUILD_ID_KIND_NONE, b"")


def _content_hash(read: Read, raw: bytes, size_bytes: int, segments: tuple[Segment, ...]) -> bytes:
    digest = hashlib.blake2b(raw + struct.pack("<Q", size_bytes), digest_size=16)
    left = MAX_HASHED_BYTES
    code = [(s.offset, s.file_size_bytes) for s in segments if s.flags & _PF_X and s.file_size_bytes]
    for start, segment_bytes in code or [(0, size_bytes)]:
        at, end = start, min(start + segment_bytes, start + left, _MAX_OFFSET)
        while at < end:
            piece = read(at, min(end - at, MAX_READ_BYTES))
            if not piece:
                break
            digest.update(piece)
            at += len(piece)
            left -= len(piece)
    return digest.digest()
