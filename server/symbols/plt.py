# SPDX-License-Identifier: Apache-2.0
"""Names the stubs of the procedure linkage table: `memcpy@plt`.

On x86-64 a lazily bound stub has 16 bytes and stub i belongs to entry i of .rela.plt; .plt has one stub more, in front, and
.plt.sec (with -fcf-protection) has none. The order is only trusted when the slots that the entries fill lie one behind the
other, and the sizes agree; else the stubs stay unknown.
"""

import numpy as np

from server.symbols.elf import EM_X86_64, SHT_RELA, ElfFile
from server.symbols.symtab import MAX_NAME_BYTES, MAX_SYMBOLS, RANK_LOCAL, RawSymbols

STUB_BYTES = 16
SLOT_BYTES = 8
R_X86_64_JUMP_SLOT = 7
MAX_STUBS = 65_536


def plt_symbols(elf: ElfFile) -> RawSymbols | None:
    """One symbol per stub; None when there are none or their order is not certain."""
    if elf.machine != EM_X86_64 or ".rela.plt" not in elf.section_names:
        return None
    relocations = elf.sections[elf.section_names.index(".rela.plt")]
    layout = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
    count = min(int(relocations["size"]) // layout.itemsize, MAX_STUBS)
    entries = elf.records(int(relocations["offset"]), count, layout) if int(relocations["type"]) == SHT_RELA else np.zeros(0, layout)
    is_slot = (entries["info"] & 0xFFFF_FFFF) == R_X86_64_JUMP_SLOT
    if not entries.size or not is_slot.all() or np.any(np.diff(entries["offset"]) != SLOT_BYTES):
        return None
    names = _names(elf, int(relocations["link"]), (entries["info"] >> 32).astype(np.int64))
    starts = [place for place in (_first_stub(elf, ".plt.sec", 0, count), _first_stub(elf, ".plt", 1, count)) if place is not None]
    if names is None or not starts:
        return None
    strings = np.frombuffer(b"".join(name + b"@plt\0" for name in names), np.uint8)
    name_starts = np.cumsum([0, *[len(name) + 5 for name in names]])[:-1]
    addresses = np.concatenate([np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(STUB_BYTES) for start in starts])
    sizes, ranks = np.full(addresses.size, STUB_BYTES, np.uint64), np.full(addresses.size, RANK_LOCAL, np.uint8)
    return RawSymbols(addresses, sizes, ranks, np.tile(name_starts, len(starts)), strings)


def _first_stub(elf: ElfFile, section_name: str, stubs_before: int, count: int) -> int | None:
    if section_name not in elf.section_names:
        return None
    section = elf.sections[elf.section_names.index(section_name)]
    if int(section["size"]) != (count + stubs_before) * STUB_BYTES:
        return None
    return int(section["addr"]) + stubs_before * STUB_BYTES


def _names(elf: ElfFile, table_index: int, symbols: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[bytes] | None:
    if table_index >= elf.sections.size:
        return None
    table = elf.sections[table_index]
    if int(table["link"]) >= elf.sections.size:
        return None
    count = int(table["size"]) // elf.layout.symbol.itemsize
    records = elf.records(int(table["offset"]), min(count, MAX_SYMBOLS), elf.layout.symbol)
    if not records.size or int(symbols.max()) >= records.size:
        return None
    strings = elf.sections[int(table["link"])]
    blob = elf.string_table(int(strings["offset"]), int(strings["size"])).tobytes()
    places = records["name"][symbols].tolist()
    return [blob[place : min(blob.find(b"\0", place), place + MAX_NAME_BYTES)] for place in places]
