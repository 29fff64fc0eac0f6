# SPDX-License-Identifier: Apache-2.0
"""Names of functions by Go's own table, which every Go program carries, stripped or not (go/src/debug/gosym/pclntab.go).

    head     magic u32 | 0 0 | instruction quantum u8 | pointer size u8 | functions | files | [start of text] | offsets of: names,
             units, files, line data, functions; all as wide as a pointer
    table    (start, offset of the function's record) per function, then the end; relative to the start of text, 4 bytes each,
             from Go 1.18 on; addresses as wide as a pointer before
    record   start | offset of the name i32 | ...

Go 1.16 and later; older programs keep their names in .symtab or stay unnamed.
"""

import numpy as np
import numpy.typing as npt

from server.symbols.elf import SHT_NOBITS, ElfFile
from server.symbols.symtab import MAX_SYMBOLS, RANK_GLOBAL, RawSymbols

GO_1_16, GO_1_18, GO_1_20 = 0xFFFF_FFFA, 0xFFFF_FFF0, 0xFFFF_FFF1
MAX_BYTES = 256 << 20
I64 = npt.NDArray[np.int64]


def go_symbols(elf: ElfFile) -> RawSymbols | None:
    """One symbol per function; None when there is no table of a known version."""
    names = [name for name in elf.section_names if name.endswith(".gopclntab")]
    if not names:
        return None
    section = elf.sections[elf.section_names.index(names[0])]
    if int(section["type"]) == SHT_NOBITS:
        return None
    return _symbols(elf.read(int(section["offset"]), min(int(section["size"]), MAX_BYTES)), _text_start(elf))


def _text_start(elf: ElfFile) -> int | None:
    """Where Go's own code starts when the table leaves it to the loader; not known when C code was linked in before it (.init)."""
    if ".text" not in elf.section_names or ".init" in elf.section_names:
        return None
    return int(elf.sections["addr"][elf.section_names.index(".text")])


def _symbols(data: bytes, text_start: int | None) -> RawSymbols | None:
    if len(data) < 72 or data[4:6] != b"\0\0" or data[7] not in (4, 8):
        return None
    width = data[7]
    magic = int.from_bytes(data[:4], "little")
    if magic not in (GO_1_16, GO_1_18, GO_1_20):
        return None
    words = [int.from_bytes(data[place : place + width], "little") for place in range(8, 8 + 8 * width, width)]
    is_relative = magic != GO_1_16
    count, names_at, functions_at = words[0], words[3 if is_relative else 2], words[7 if is_relative else 6]
    text = (words[2] or text_start) if is_relative else 0
    entry = 4 if is_relative else width
    if (
        text is None
        or text >= 1 << 62
        or not 0 < count <= MAX_SYMBOLS
        or functions_at + (2 * count + 1) * entry > len(data)
        or names_at >= len(data)
    ):
        return None
    table = np.frombuffer(data, f"<u{entry}", 2 * count + 1, functions_at).astype(np.int64)
    starts, records = table[0::2], table[1::2] + functions_at + entry
    whole = np.frombuffer(data + b"\0", np.uint8)
    inside = (records >= 0) & (records + 4 <= len(data))
    name_offsets = whole[np.where(inside, records, 0)[:, None] + np.arange(4)].copy().view("<i4").ravel().astype(np.int64)
    name_starts = name_offsets + names_at
    keep = inside & (name_offsets >= 0) & (name_starts < len(data)) & (np.diff(starts) > 0)
    return RawSymbols(
        (starts[:-1][keep] + text).astype(np.uint64),
        np.diff(starts)[keep].astype(np.uint64),
        np.full(int(keep.sum()), RANK_GLOBAL, np.uint8),
        name_starts[keep],
        whole,
    )
