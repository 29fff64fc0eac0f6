# SPDX-License-Identifier: Apache-2.0
"""Copies an ELF64 file without its program text; runs alone, in a jailed child of cutter.py.

    python -I -m agent.process.upload_cut IN_FD OUT_FD UID GID

Executable SHF_ALLOC PROGBITS sections become SHT_NOBITS; all others are copied as they are, .eh_frame included; the section table stands
at the end. The program headers follow the ELF header unchanged: those of the running binary are sent beside the profile.
The file is hostile until proven otherwise: every number is checked against the size of the file, what is odd ends with a reason, and what
this misses ends at a limit. Only the standard library and agent/jail.py are imported. Layouts: ELF gABI.
"""

import os
import struct
import sys
from enum import IntEnum

from agent.jail import JailLimits, enter_jail

_PIECE_BYTES = 1 << 20
_MAX_OUT_BYTES = 2 << 30
_LIMITS = JailLimits(memory_bytes=512 << 20, cpu_s=60, file_bytes=_MAX_OUT_BYTES)
_MAX_SECTIONS = 1 << 17
_MAX_PROGRAM_HEADERS = 4096
_MAX_ALIGNMENT = 1 << 16
_HEADER_BYTES, _PROGRAM_BYTES, _SECTION_BYTES = 64, 56, 64
_SHT_NULL, _SHT_PROGBITS, _SHT_NOBITS = 0, 1, 8
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4


class CutExit(IntEnum):
    """Exit status of the child."""

    DONE = 0
    NO_ELF = 10
    """Not an ELF64 file."""
    NO_SECTIONS = 11
    """The section table was stripped: there is nothing names could be made from."""
    MALFORMED = 12
    """A table or a section lies outside the file, or they add up to more than the file."""
    TOO_LARGE = 13
    IO = 14
    """Reading or writing failed."""
    JAIL = 15
    """The limits could not be set, so nothing was read."""


class _Refused(Exception):
    def __init__(self, status: CutExit) -> None:
        super().__init__(status.name)
        self.status = status


def cut(source: int, target: int) -> CutExit:
    """Write the cut copy of the file `source` to `target`, both descriptors."""
    try:
        size_bytes = os.fstat(source).st_size
        header = _read(source, 0, min(_HEADER_BYTES, size_bytes))
        order = _order(header)
        sections = _sections(source, size_bytes, header, order)
        programs = _programs(source, size_bytes, header, order)
        copied_bytes = sum(_bytes_in_file(section) for section in sections)
        if copied_bytes > size_bytes:
            return CutExit.MALFORMED
        if copied_bytes > _MAX_OUT_BYTES:
            return CutExit.TOO_LARGE
        at = _HEADER_BYTES + len(programs)
        _write(target, _HEADER_BYTES, programs)
        for section in sections:
            at = _place(section, at)
            section_bytes = _bytes_in_file(section)
            _copy(source, section[4], target, at, section_bytes)
            section[4] = at
            at += section_bytes
        at = (at + 7) // 8 * 8
        _write(target, at, b"".join(struct.pack(order + "IIQQQQIIQQ", *section) for section in sections))
        _write(target, 0, _new_header(header, order, at, len(programs) // _PROGRAM_BYTES))
    except _Refused as refused:
        return refused.status
    except OSError:
        return CutExit.IO
    return CutExit.DONE


def _order(header: bytes) -> str:
    if len(header) < _HEADER_BYTES or header[:5] != b"\x7fELF\x02" or header[5] not in (1, 2):
        raise _Refused(CutExit.NO_ELF)
    return "<" if header[5] == 1 else ">"


def _sections(source: int, size_bytes: int, header: bytes, order: str) -> list[list[int]]:
    """Section headers as lists: name, type, flags, addr, offset, size, link, info, alignment, entry size. Text is NOBITS already."""
    table_at = struct.unpack_from(order + "Q", header, 0x28)[0]
    entry_bytes, count = struct.unpack_from(order + "HH", header, 0x3A)
    if table_at == 0:
        raise _Refused(CutExit.NO_SECTIONS)
    if entry_bytes != _SECTION_BYTES or table_at + _SECTION_BYTES > size_bytes:
        raise _Refused(CutExit.MALFORMED)
    if count == 0:
        # More sections than the header can count: the number stands in the size of section 0.
        count = struct.unpack_from(order + "Q", _read(source, table_at, _SECTION_BYTES), 0x20)[0]
    if count == 0:
        raise _Refused(CutExit.NO_SECTIONS)
    if count > _MAX_SECTIONS or table_at + count * _SECTION_BYTES > size_bytes:
        raise _Refused(CutExit.MALFORMED)
    table = _read(source, table_at, count * _SECTION_BYTES)
    return [_checked(list(entry), size_bytes) for entry in struct.iter_unpack(order + "IIQQQQIIQQ", table)]


def _checked(section: list[int], size_bytes: int) -> list[int]:
    _, kind, flags, _, offset, section_bytes, *_ = section
    # The size of section 0, which has no bytes, may be the number of sections.
    if kind in (_SHT_NULL, _SHT_NOBITS):
        return section
    if offset + section_bytes > size_bytes:
        raise _Refused(CutExit.MALFORMED)
    if kind == _SHT_PROGBITS and flags & _SHF_ALLOC and flags & _SHF_EXECINSTR:
        section[1] = _SHT_NOBITS
    return section


def _bytes_in_file(section: list[int]) -> int:
    return section[5] if section[1] not in (_SHT_NULL, _SHT_NOBITS) else 0


def _place(section: list[int], at: int) -> int:
    """Where the section may begin, at or behind `at`."""
    alignment = section[8]
    if not 1 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
        return at
    return (at + alignment - 1) // alignment * alignment


def _programs(source: int, size_bytes: int, header: bytes, order: str) -> bytes:
    table_at = struct.unpack_from(order + "Q", header, 0x20)[0]
    entry_bytes, count = struct.unpack_from(order + "HH", header, 0x36)
    if count == 0:
        return b""
    if entry_bytes != _PROGRAM_BYTES or count > _MAX_PROGRAM_HEADERS or table_at + count * _PROGRAM_BYTES > size_bytes:
        raise _Refused(CutExit.MALFORMED)
    return _read(source, table_at, count * _PROGRAM_BYTES)


def _new_header(header: bytes, order: str, sections_at: int, programs: int) -> bytes:
    changed = bytearray(header)
    struct.pack_into(order + "QQ", changed, 0x20, _HEADER_BYTES if programs else 0, sections_at)
    return bytes(changed)


def _read(source: int, at: int, size_bytes: int) -> bytes:
    piece = os.pread(source, size_bytes, at)
    if len(piece) != size_bytes:
        raise _Refused(CutExit.MALFORMED)
    return piece


def _copy(source: int, source_at: int, target: int, at: int, left_bytes: int) -> None:
    while left_bytes:
        piece = _read(source, source_at, min(left_bytes, _PIECE_BYTES))
        _write(target, at, piece)
        source_at += len(piece)
        at += len(piece)
        left_bytes -= len(piece)


def _write(target: int, at: int, data: bytes) -> None:
    if at + len(data) > _MAX_OUT_BYTES:
        raise _Refused(CutExit.TOO_LARGE)
    while data:
        written = os.pwrite(target, data, at)
        data, at = data[written:], at + written


def main(arguments: list[str]) -> int:
    """The child: descriptors, then the user and group to become when started as root."""
    source, target, uid, gid = (int(argument) for argument in arguments)
    try:
        enter_jail(uid, gid, _LIMITS)
    except (OSError, ValueError):
        return CutExit.JAIL
    try:
        return cut(source, target)
    except MemoryError:
        return CutExit.TOO_LARGE


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
