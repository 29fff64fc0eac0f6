# SPDX-License-Identifier: Apache-2.0
"""Finds separate debug files inside the configured directories: by build id, by .gnu_debuglink, by .gnu_debugaltlink.

A link inside a file is data of whoever made the file. It never leads out of the roots (server/symbols/rooted.py), and what it leads to
counts only when it proves to be meant: by the CRC of a debuglink, by the build id of an altlink. Directories beside the binary, which
GDB asks too, are not inside a root and are not asked.
"""

import os
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import Refused
from server.symbols.elf_probe import AltLink, DebugLink, Probe, probe
from server.symbols.rooted import open_in_root

MAX_CHECKED_BYTES = 4 << 30
_PIECE_BYTES = 1 << 20


def open_by_build_id(build_id_kind: int, build_id: bytes, roots: Sequence[Path]) -> int | None:
    """The debug file ROOT/.build-id/ab/cdef….debug; None when there is none. The build checks the id inside again."""
    if build_id_kind != pb.BUILD_ID_KIND_GNU or len(build_id) < 2:
        return None
    digits = build_id.hex()
    for root in roots:
        descriptor = open_in_root(root, PurePosixPath(".build-id", digits[:2], f"{digits[2:]}.debug"))
        if descriptor is not None:
            return descriptor
    return None


def open_by_debug_link(binary: int, link: DebugLink, path: bytes, roots: Sequence[Path]) -> int | None:
    """The debug file that the binary at `path` names: ROOT/its directory/NAME with the CRC of the link.

    A link to the binary itself (C23) and a file of that name with other bytes are passed over.
    """
    own, directory = os.fstat(binary), PurePosixPath(os.fsdecode(path)).parent
    for root in roots:
        descriptor = open_in_root(root, directory / os.fsdecode(link.name))
        if descriptor is None:
            continue
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino) and crc_of(descriptor) == link.crc:
            return descriptor
        os.close(descriptor)
    return None


def open_by_alt_link(link: AltLink, roots: Sequence[Path]) -> int | None:
    """The file with what several debug files share, by its build id, or by the part of its path below .dwz, with that build id."""
    places = [PurePosixPath(".build-id", link.build_id.hex()[:2], f"{link.build_id.hex()[2:]}.debug")]
    _, found, below = link.path.rpartition(b".dwz/")
    if found:
        places.append(PurePosixPath(".dwz", os.fsdecode(below)))
    for root in roots:
        for place in places:
            descriptor = open_in_root(root, place)
            if descriptor is None:
                continue
            seen = probe_or_none(descriptor)
            if seen is not None and seen.build_ids.gnu == link.build_id:
                return descriptor
            os.close(descriptor)
    return None


def probe_or_none(descriptor: int) -> Probe | None:
    """A look at a file that may be anything; None when it is not an ELF file or cannot be read."""
    try:
        return probe(descriptor)
    except (Refused, OSError):
        return None


def crc_of(descriptor: int) -> int | None:
    """CRC-32 of all bytes, as .gnu_debuglink has it; None for a file too large to be read for that."""
    if os.fstat(descriptor).st_size > MAX_CHECKED_BYTES:
        return None
    crc, place = 0, 0
    while piece := os.pread(descriptor, _PIECE_BYTES, place):
        crc = zlib.crc32(piece, crc)
        place += len(piece)
    return crc
