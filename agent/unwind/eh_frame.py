# SPDX-License-Identifier: Apache-2.0
"""Finds the .eh_frame of an ELF64 file for x86-64.

PT_GNU_EH_FRAME, which the C++ runtime itself goes by, points at .eh_frame_hdr, and that at .eh_frame. Its length stands in the section
table only; where that was stripped, the entries end at the first of length zero (LSB, "Exception Frames"; binutils write one).
Sections of jumps into other files (plt.py) are found beside it.
The file is hostile: every number is checked against the file, every read is capped.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from agent.records.unwind import TableMiss
from agent.unwind.plt import HEAD_BYTES, PLT_NAMES, Plt, plt_of

Read = Callable[[int, int], bytes]
"""read(offset, size) gives at most `size` bytes, fewer at the end of the file."""

MAX_EH_FRAME_BYTES = 64 << 20
_MAX_PROGRAM_HEADERS = 4096
_MAX_SECTIONS = 1 << 16
_HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ET_EXEC, _ET_DYN, _EM_X86_64 = 2, 3, 62
_PT_LOAD, _PT_GNU_EH_FRAME, _PF_X = 1, 0x6474E550, 1
_SHT_PROGBITS, _SHT_X86_64_UNWIND, _SHF_EXECINSTR = 1, 0x70000001, 4
_MOST_PLTS = 8
_MAX_NAMES_BYTES = 1 << 20
_MAX_ADDRESS = 1 << 47
_UDATA4, _SDATA4, _SDATA8, _PC_RELATIVE = 0x03, 0x0B, 0x0C, 0x10


class DecodeRefused(Exception):
    """There will be no table; `miss` says why."""

    def __init__(self, miss: TableMiss, detail: str) -> None:
        super().__init__(detail)
        self.miss = miss


@dataclass(frozen=True, slots=True)
class EhFrame:
    """The bytes of .eh_frame and what their addresses refer to."""

    address: int
    """Virtual address of the first byte."""
    data: bytes
    """All entries; where the section table was stripped, with what follows them."""
    is_exact: bool
    """`data` ends where the section ends, so that an entry of length zero may lie between others."""
    text: tuple[tuple[int, int], ...]
    """Virtual addresses [start, end) of executable bytes of the file, sorted."""
    plts: tuple[Plt, ...] = ()
    """Where jumps into other files lie; empty where the section table was stripped."""


@dataclass(frozen=True, slots=True)
class _Program:
    kind: int
    flags: int
    offset: int
    vaddr: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: bytes
    """With its end mark; cut where it is longer than any that is looked for."""
    is_code: bool
    address: int
    offset: int
    size_bytes: int


def find_eh_frame(read: Read) -> EhFrame:
    """Find and read it. Raises DecodeRefused."""
    raw = read(0, _HEADER.size)
    if len(raw) < _HEADER.size or raw[:6] != b"\x7fELF\x02\x01":
        raise DecodeRefused(TableMiss.NOT_SUPPORTED, "not a little-endian ELF64 file")
    header = _HEADER.unpack(raw)
    if header[3] not in (_ET_EXEC, _ET_DYN) or header[4] != _EM_X86_64:
        raise DecodeRefused(TableMiss.NOT_SUPPORTED, "not a program or library for x86-64")
    programs = _programs(read, header)
    loads = [p for p in programs if p.kind == _PT_LOAD]
    text = tuple(sorted((p.vaddr, p.vaddr + p.file_bytes) for p in loads if p.flags & _PF_X and p.file_bytes))
    sections = _sections(read, header)
    section = next((s for s in sections if s.name == b".eh_frame\0" and not s.is_code), None)
    pointed = _pointed_at(read, [p for p in programs if p.kind == _PT_GNU_EH_FRAME])
    if section is not None and pointed in (None, section.address):
        return EhFrame(section.address, _bytes(read, section.offset, section.size_bytes), True, text, _plts(read, sections))
    if pointed is None:
        raise DecodeRefused(TableMiss.NO_RULES, "no .eh_frame")
    load = next((p for p in loads if p.vaddr <= pointed < p.vaddr + p.file_bytes), None)
    if load is None:
        raise DecodeRefused(TableMiss.MALFORMED, ".eh_frame_hdr points outside the file")
    skipped = pointed - load.vaddr
    data = read(load.offset + skipped, min(load.file_bytes - skipped, MAX_EH_FRAME_BYTES))
    return EhFrame(pointed, data, False, text, _plts(read, sections))


def _programs(read: Read, header: tuple[int, ...]) -> list[_Program]:
    table_at, entry_bytes, count = header[7], header[11], header[12]
    if entry_bytes != _PROGRAM.size or count > _MAX_PROGRAM_HEADERS:
        raise DecodeRefused(TableMiss.MALFORMED, f"{count} program headers of {entry_bytes} bytes")
    raw = _bytes(read, table_at, count * entry_bytes)
    found = [_Program(kind, flags, offset, vaddr, size) for kind, flags, offset, vaddr, _, size, _, _ in _PROGRAM.iter_unpack(raw)]
    if any(max(p.vaddr, p.offset) + p.file_bytes > _MAX_ADDRESS for p in found if p.kind in (_PT_LOAD, _PT_GNU_EH_FRAME)):
        raise DecodeRefused(TableMiss.MALFORMED, "a segment outside the user address space")
    return found


def _sections(read: Read, header: tuple[int, ...]) -> list[_Section]:
    """Sections that the file holds in full; none where the section table is missing or odd."""
    table_at, entry_bytes, count, names_at = header[8], header[13], header[14], header[15]
    if not table_at or entry_bytes != _SECTION.size or not names_at < count <= _MAX_SECTIONS:
        return []
    raw = read(table_at, count * entry_bytes)
    if len(raw) != count * entry_bytes:
        return []
    entries = list(_SECTION.iter_unpack(raw))
    names = read(entries[names_at][4], min(entries[names_at][5], _MAX_NAMES_BYTES))
    return [
        _Section(names[name : name + 10].partition(b"\0")[0] + b"\0", bool(flags & _SHF_EXECINSTR), address, offset, size_bytes)
        for name, kind, flags, address, offset, size_bytes, *_ in entries
        if kind in (_SHT_PROGBITS, _SHT_X86_64_UNWIND)
    ]


def _plts(read: Read, sections: list[_Section]) -> tuple[Plt, ...]:
    found = [section for section in sections if section.is_code and section.name in PLT_NAMES][:_MOST_PLTS]
    is_sane = [max(one.address, one.offset) + one.size_bytes <= _MAX_ADDRESS for one in found]
    return tuple(
        plt_of(read(one.offset, min(HEAD_BYTES, one.size_bytes)), one.address, one.address + one.size_bytes)
        for one, is_good in zip(found, is_sane, strict=True)
        if is_good
    )


def _pointed_at(read: Read, headers: list[_Program]) -> int | None:
    """Address of .eh_frame as .eh_frame_hdr has it; None when there is none. Only encodings that linkers write are understood."""
    if not headers:
        return None
    found = headers[0]
    raw = read(found.offset, 12)
    if len(raw) < 12 or raw[0] != 1:
        return None
    if raw[1] in (_SDATA4 | _PC_RELATIVE, _UDATA4 | _PC_RELATIVE):
        return int(found.vaddr + 4 + struct.unpack_from("<i", raw, 4)[0])
    if raw[1] == _SDATA8 | _PC_RELATIVE:
        return int(found.vaddr + 4 + struct.unpack_from("<q", raw, 4)[0])
    return None


def _bytes(read: Read, offset: int, size_bytes: int) -> bytes:
    if size_bytes > MAX_EH_FRAME_BYTES:
        raise DecodeRefused(TableMiss.TOO_LARGE, f"{size_bytes} bytes of .eh_frame")
    raw = read(offset, size_bytes) if offset < _MAX_ADDRESS else b""
    if len(raw) != size_bytes:
        raise DecodeRefused(TableMiss.MALFORMED, "a table outside the file")
    return raw
