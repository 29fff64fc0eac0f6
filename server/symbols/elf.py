# SPDX-License-Identifier: Apache-2.0
"""Reads from an ELF file what names need: build ids, executable ranges and symbol tables.

Headers and tables are read as numpy records, in one go each, with every size checked before it is used: a table of 36,000
symbols takes milliseconds, and no foreign parser sees hostile bytes. Layouts are those of elf(5), both classes and both byte
orders. Runs in the jailed child only.

A file whose section headers are gone or broken still gives what its dynamic segment names (server/symbols/elf_dynamic.py).
"""

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.build_result import BuildStatus, Quality, Refused
from server.symbols.notes import BuildIds, parse_build_ids
from server.symbols.symtab import MAX_SYMBOLS, RANK_GLOBAL, RANK_LOCAL, RANK_WEAK, Ranges, RawSymbols
from server.symbols.table import Traits

Records = npt.NDArray[np.void]

MAX_HEADERS = 65_536
MAX_STRINGS_BYTES = 256 << 20
MAX_NOTES_BYTES = 64 << 10
MAX_NOTES_PER_FILE = 32

ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
EM_ARM, EM_X86_64 = 40, 62
PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
PF_X = 1
SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 4, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
SHN_UNDEF, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFFF1, 0xFFF2, 0xFFFF
STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC = 0, 2, 10
INIT_PLACE = 1 << 30
"""Where code of a module that runs once is put: no module is as large."""
STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 1, 2, 10


@dataclass(frozen=True, slots=True)
class Layout:
    """Record layouts of one class and byte order."""

    byte_order: str
    header: struct.Struct
    segment: np.dtype[np.void]
    section: np.dtype[np.void]
    symbol: np.dtype[np.void]
    dynamic: np.dtype[np.void]
    word: np.dtype[np.unsignedinteger]

    @classmethod
    def of(cls, is_64: bool, byte_order: str) -> "Layout":
        """The layout of 64 or 32 bit files, "<" or ">"."""
        word = byte_order + ("u8" if is_64 else "u4")
        half, short, byte = byte_order + "u4", byte_order + "u2", "u1"
        if is_64:
            segment = _dtype(type=half, flags=half, offset=word, vaddr=word, paddr=word, filesz=word, memsz=word, align=word)
            symbol = _dtype(name=half, info=byte, other=byte, shndx=short, value=word, size=word)
        else:
            segment = _dtype(type=half, offset=word, vaddr=word, paddr=word, filesz=word, memsz=word, flags=half, align=word)
            symbol = _dtype(name=half, value=word, size=word, info=byte, other=byte, shndx=short)
        section = _dtype(
            name=half, type=half, flags=word, addr=word, offset=word, size=word, link=half, info=half, align=word, entsize=word
        )
        header = struct.Struct(byte_order + ("16xHHIQQQIHHHHHH" if is_64 else "16xHHIIIIIHHHHHH"))
        return cls(byte_order, header, segment, section, symbol, _dtype(tag=word, value=word), np.dtype(word))


def _dtype(**fields: str) -> np.dtype[np.void]:
    return np.dtype(list(fields.items()))


class ElfFile:
    """An ELF file behind a descriptor. Raises Refused when it is none, or of a kind that has no names here."""

    def __init__(self, descriptor: int, kinds: tuple[int, ...] = (ET_EXEC, ET_DYN), span: tuple[int, int] | None = None) -> None:
        """`span` is (offset, size) of the file where it lies among others."""
        self._descriptor = descriptor
        self._base, self.size = span or (0, os.fstat(descriptor).st_size)
        start = self.read(0, 64)
        if start[:4] != b"\x7fELF":
            raise Refused(BuildStatus.MALFORMED, f"starts with {start[:8].hex(' ') or 'nothing'}: not an ELF file")
        if start[4:5] not in (b"\1", b"\2") or start[5:6] not in (b"\1", b"\2"):
            raise Refused(BuildStatus.MALFORMED, f"unknown class or byte order {start[4:6].hex(' ')}")
        self.layout = Layout.of(start[4] == 2, "<" if start[5] == 1 else ">")
        if len(start) < self.layout.header.size:
            raise Refused(BuildStatus.MALFORMED, f"header cut at {len(start)} bytes")
        fields = self.layout.header.unpack_from(start)
        kind, self.machine, _, _, self._phoff, self._shoff, _, _, self._phentsize, self._phnum, self._shentsize, self._shnum, strings = (
            fields
        )
        if kind not in kinds:
            raise Refused(BuildStatus.UNSUPPORTED, f"ELF type {kind}: neither a program nor a shared object")
        self.is_relocatable = kind == ET_REL
        self.sections = self._read_sections()
        self.segments = self._read_segments()
        self.has_broken_sections = bool(self._shoff) and not self.sections.size
        if not self.sections.size and not self.segments.size:
            raise Refused(BuildStatus.MALFORMED, "neither section nor program headers can be read")
        self.section_names = self._read_section_names(strings)
        if self.is_relocatable:
            self.sections = placed_sections(self.sections, self.section_names)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end; b"" for places outside."""
        if offset >= self.size or size <= 0:
            return b""
        return os.pread(self._descriptor, min(size, self.size - offset), self._base + offset)

    def records(self, offset: int, count: int, layout: np.dtype[np.void]) -> Records:
        """`count` records from `offset`; none at all when they do not lie inside the file."""
        size = count * layout.itemsize
        if count <= 0 or offset + size > self.size:
            return np.zeros(0, layout)
        return np.frombuffer(self.read(offset, size), layout)

    def build_ids(self) -> BuildIds:
        """Build ids by the notes of the segments, which is how the agent sees the running file."""
        notes = self.segments[self.segments["type"] == PT_NOTE][:MAX_NOTES_PER_FILE]
        return self._build_ids(notes["offset"].tolist(), notes["filesz"].tolist(), notes["align"].tolist())

    def section_build_ids(self) -> BuildIds:
        """Build ids by the notes of the sections: in a debug file, and in one whose text was cut, segments point nowhere."""
        notes = self.sections[self.sections["type"] == SHT_NOTE][:MAX_NOTES_PER_FILE]
        return self._build_ids(notes["offset"].tolist(), notes["size"].tolist(), notes["align"].tolist())

    def code(self) -> Ranges:
        """Executable sections, or executable segments when there are no section headers."""
        is_code = is_code_section(self.sections)
        if is_code.any():
            return _ranges(self.sections["addr"][is_code], self.sections["size"][is_code])
        is_code = (self.segments["type"] == PT_LOAD) & ((self.segments["flags"] & PF_X) != 0)
        return _ranges(self.segments["vaddr"][is_code], self.segments["memsz"][is_code])

    def traits(self, ids: BuildIds) -> Traits:
        """Go programs are known by their note or by their line table."""
        has_line_table = any(name.endswith(".gopclntab") for name in self.section_names)  # .data.rel.ro.gopclntab when PIE.
        return Traits.GO if ids.go or has_line_table else Traits.NONE

    def symbol_tables(self) -> tuple[list[RawSymbols], Quality]:
        """All symbol tables that can be read, and how good they are."""
        found, quality = [], Quality.EMPTY
        for kind, worth in ((SHT_SYMTAB, Quality.FULL), (SHT_DYNSYM, Quality.DYNAMIC)):
            for section in self.sections[self.sections["type"] == kind][:4]:
                table = self._symbol_table(section)
                if table is not None and table.starts.size:
                    found.append(table)
                    quality = max(quality, worth)
        return found, quality

    def string_table(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """A string table with a zero at its end; what of it lies outside the file is missing."""
        size = max(0, min(size, self.size - offset))
        if size > MAX_STRINGS_BYTES:
            raise Refused(BuildStatus.LIMIT, f"string table of {size} bytes, at most {MAX_STRINGS_BYTES} are read")
        return np.frombuffer(self.read(offset, size) + b"\0", np.uint8)

    def symbols_from(self, records: Records, strings: npt.NDArray[np.uint8]) -> RawSymbols:
        """The records that may name code."""
        kind, bind, section = records["info"] & 15, records["info"] >> 4, records["shndx"]
        is_code = (kind == STT_NOTYPE) | (kind == STT_FUNC) | (kind == STT_GNU_IFUNC)
        is_code &= (section != SHN_UNDEF) & (section != SHN_ABS) & (section != SHN_COMMON)
        if self.is_relocatable:  # Of all other sections nothing tells where they lie.
            is_code &= is_code_section(self.sections)[np.minimum(section, self.sections.size - 1)]
        records, kind, bind = records[is_code], kind[is_code], bind[is_code]
        starts = records["value"].astype(np.uint64)
        if self.is_relocatable:
            starts += self.sections["addr"].astype(np.uint64)[np.minimum(records["shndx"], self.sections.size - 1)]
        if self.machine == EM_ARM:  # The lowest bit says Thumb, it is no part of the address (AAELF32).
            starts &= np.uint64(0xFFFF_FFFE)
        ranks = np.full(records.size, RANK_LOCAL, np.uint8)
        ranks[(bind == STB_GLOBAL) | (bind == STB_GNU_UNIQUE)] = RANK_GLOBAL
        ranks[bind == STB_WEAK] = RANK_WEAK
        return RawSymbols(starts, records["size"].astype(np.uint64), ranks, records["name"].astype(np.int64), strings)

    def _build_ids(self, offsets: list[int], sizes: list[int], alignments: list[int]) -> BuildIds:
        found = BuildIds()
        for offset, size, alignment in zip(offsets, sizes, alignments, strict=True):
            data = self.read(offset, min(size, MAX_NOTES_BYTES))
            # Linkers have put notes padded to 4 and to 8 bytes into one segment: the other padding is tried too.
            for padding in (alignment, 4 if alignment == 8 else 8):
                found = found.filled_from(parse_build_ids(data, padding, self.layout.byte_order))
        return found

    def _symbol_table(self, section: np.void) -> RawSymbols | None:
        link, itemsize = int(section["link"]), self.layout.symbol.itemsize
        if link >= self.sections.size or int(section["flags"]) & SHF_COMPRESSED or int(section["entsize"]) not in (0, itemsize):
            return None
        count = int(section["size"]) // itemsize
        if count > MAX_SYMBOLS and int(section["size"]) <= self.size:
            raise Refused(BuildStatus.LIMIT, f"{count} symbols, at most {MAX_SYMBOLS} are read")
        strings = self.sections[link]
        return self.symbols_from(
            self.records(int(section["offset"]), count, self.layout.symbol), self.string_table(int(strings["offset"]), int(strings["size"]))
        )

    def _read_sections(self) -> Records:
        none = np.zeros(0, self.layout.section)
        if not self._shoff or self._shentsize != self.layout.section.itemsize:
            return none
        count = self._shnum
        if not count:  # More than fit 16 bits: the number stands in the first header.
            first = self.records(self._shoff, 1, self.layout.section)
            count = int(first["size"][0]) if first.size else 0
        return self.records(self._shoff, count, self.layout.section) if count <= MAX_HEADERS else none

    def _read_segments(self) -> Records:
        count = self._phnum
        if count == 0xFFFF and self.sections.size:  # PN_XNUM: the number stands in the first section header.
            count = int(self.sections["info"][0])
        if self._phentsize != self.layout.segment.itemsize or count > MAX_HEADERS:
            return np.zeros(0, self.layout.segment)
        return self.records(self._phoff, count, self.layout.segment)

    def _read_section_names(self, index: int) -> list[str]:
        if index == SHN_XINDEX and self.sections.size:
            index = int(self.sections["link"][0])
        if index >= self.sections.size:
            return [""] * self.sections.size
        strings = self.read(int(self.sections["offset"][index]), min(int(self.sections["size"][index]), 1 << 20))
        return [strings[place : place + 64].partition(b"\0")[0].decode("ascii", "replace") for place in self.sections["name"].tolist()]


def is_code_section(sections: Records) -> npt.NDArray[np.bool_]:
    """Which sections hold code that is loaded."""
    flags: npt.NDArray[np.bool_] = (sections["flags"] & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR)
    return flags


def placed_sections(sections: Records, names: Sequence[str]) -> Records:
    """Sections of a kernel module with the addresses of its text, as the kernel lays it out (layout_sections() in kernel/module/main.c).

    Executable sections come one after another from 0 in the order of the file, each at a multiple of its alignment; what runs only once
    (.init…) lies elsewhere, far behind. All other sections are at 0.
    """
    placed = sections.copy()
    placed["addr"] = 0
    ends = {False: 0, True: INIT_PLACE}
    for row in np.flatnonzero(is_code_section(sections)).tolist():
        is_init, align = names[row].startswith(".init"), max(1, int(sections["align"][row]))
        start = (ends[is_init] + align - 1) // align * align
        end = start + int(sections["size"][row])
        if end > 2 * INIT_PLACE:
            raise Refused(BuildStatus.MALFORMED, f"section {names[row]} of {int(sections['size'][row])} bytes")
        placed["addr"][row] = start
        ends[is_init] = end
    return placed


def _ranges(starts: npt.NDArray[np.unsignedinteger], sizes: npt.NDArray[np.unsignedinteger]) -> Ranges:
    low, size = starts.astype(np.uint64), sizes.astype(np.uint64)
    order = np.argsort(low, kind="stable")
    low, high = low[order], (low + size)[order]
    keep = high > low  # Neither empty nor past the end of the address space.
    low, high = low[keep], high[keep]
    if low.size:
        apart = np.concatenate([[True], low[1:] >= np.maximum.accumulate(high)[:-1]])
        low, high = low[apart], high[apart]
    return Ranges(low, high)
