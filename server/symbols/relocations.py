# SPDX-License-Identifier: Apache-2.0
"""Debug sections of kernel modules, which are relocatable: numbers in them are filled in as a linker would, on whole arrays.

Only the plain kinds that compilers use in debug sections are known: a symbol's address and a constant, 4 or 8 bytes wide. Layouts and
numbers are those of elf(5) and of the processor supplements (x86-64: R_X86_64_64, _32, _32S; AArch64: R_AARCH64_ABS64, _ABS32).
"""

import numpy as np
import numpy.typing as npt

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.elf import EM_X86_64, SHT_RELA, SHT_SYMTAB, ElfFile

EM_AARCH64 = 183
_WIDTHS = {EM_X86_64: {1: 8, 10: 4, 11: 4}, EM_AARCH64: {257: 8, 258: 4}}
"""Bytes by type, by machine."""
_NONE = 0


def relocated(elf: ElfFile, section: int | None, data: bytes) -> bytes:
    """The section with its relocations applied. Raises Refused for kinds that nobody knows."""
    if section is None:
        return data
    sections = elf.sections
    for row in np.flatnonzero((sections["type"] == SHT_RELA) & (sections["info"] == section)).tolist():
        data = _apply(elf, sections[row], data)
    return data


def _apply(elf: ElfFile, table: np.void, data: bytes) -> bytes:
    order, link = elf.layout.byte_order, int(table["link"])
    if elf.layout.word.itemsize != 8 or elf.machine not in _WIDTHS or link >= elf.sections.size or elf.sections["type"][link] != SHT_SYMTAB:
        raise Refused(BuildStatus.UNSUPPORTED, f"relocations of machine {elf.machine}")
    layout = np.dtype([("offset", f"{order}u8"), ("type", f"{order}u4"), ("symbol", f"{order}u4"), ("addend", f"{order}i8")])
    if order == ">":
        layout = np.dtype([("offset", f"{order}u8"), ("symbol", f"{order}u4"), ("type", f"{order}u4"), ("addend", f"{order}i8")])
    found = elf.records(int(table["offset"]), int(table["size"]) // layout.itemsize, layout)
    symbols = elf.records(
        int(elf.sections["offset"][link]), int(elf.sections["size"][link]) // elf.layout.symbol.itemsize, elf.layout.symbol
    )
    found = found[(found["type"] != _NONE) & (found["symbol"] < symbols.size)]
    chosen = symbols[found["symbol"]]
    addresses = np.append(elf.sections["addr"].astype(np.uint64), np.uint64(0))
    homes = addresses[np.minimum(chosen["shndx"], elf.sections.size)]  # SHN_ABS and the like are behind all sections: they lie in none.
    values = chosen["value"].astype(np.uint64) + homes + found["addend"].astype(np.int64).astype(np.uint64)
    out = np.frombuffer(data, np.uint8).copy()
    known = np.zeros(found.size, np.bool_)
    for kind, width in _WIDTHS[elf.machine].items():
        is_kind = found["type"] == kind
        known |= is_kind
        _put(out, found["offset"][is_kind], values[is_kind], width, order)
    if not known.all():
        raise Refused(BuildStatus.UNSUPPORTED, f"relocation of type {int(found['type'][~known][0])} in debug data")
    return out.tobytes()


def _put(
    out: npt.NDArray[np.uint8], places: npt.NDArray[np.unsignedinteger], values: npt.NDArray[np.uint64], width: int, order: str
) -> None:
    if places.size and int(places.max()) + width > out.size:
        raise Refused(BuildStatus.MALFORMED, "a relocation behind the end of its section")
    numbers = values.astype(f"{order}u{width}").view(np.uint8).reshape(-1, width)
    out[places.astype(np.int64)[:, None] + np.arange(width)] = numbers
