# SPDX-License-Identifier: Apache-2.0
"""Finds the dynamic symbols of an ELF file without its section headers, the way the dynamic loader does.

The dynamic segment gives addresses of the symbol table, its strings and its hash table; only the hash table tells how many
symbols there are. Layout of DT_GNU_HASH: bucket count, index of the first hashed symbol, bloom words, shift (u32 each), the
bloom filter, the buckets, then one u32 per hashed symbol whose lowest bit ends a chain.
"""

import numpy as np

from server.symbols.elf import PT_DYNAMIC, PT_LOAD, ElfFile
from server.symbols.symtab import MAX_SYMBOLS, RawSymbols

DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_GNU_HASH = 4, 5, 6, 10, 0x6FFF_FEF5
MAX_ENTRIES = 4096


def dynamic_symbols(elf: ElfFile) -> RawSymbols | None:
    """The symbols that the dynamic segment leads to; None when it leads nowhere."""
    segments = elf.segments[elf.segments["type"] == PT_DYNAMIC]
    if not segments.size:
        return None
    layout = elf.layout.dynamic
    count = min(int(segments["filesz"][0]) // layout.itemsize, MAX_ENTRIES)
    entries = elf.records(int(segments["offset"][0]), count, layout)
    tags = dict(reversed(list(zip(entries["tag"].tolist(), entries["value"].tolist(), strict=True))))
    symbols, strings = _file_offset(elf, tags.get(DT_SYMTAB)), _file_offset(elf, tags.get(DT_STRTAB))
    if symbols is None or strings is None:
        return None
    total = _count(elf, _file_offset(elf, tags.get(DT_HASH)), _file_offset(elf, tags.get(DT_GNU_HASH)))
    records = elf.records(symbols, min(total, MAX_SYMBOLS), elf.layout.symbol)
    return elf.symbols_from(records, elf.string_table(strings, int(tags.get(DT_STRSZ, 0))))


def _file_offset(elf: ElfFile, address: int | None) -> int | None:
    if address is None:
        return None
    for segment in elf.segments[elf.segments["type"] == PT_LOAD]:
        start = int(segment["vaddr"])
        if start <= address < start + int(segment["filesz"]):
            return address - start + int(segment["offset"])
    return None


def _count(elf: ElfFile, plain_hash: int | None, gnu_hash: int | None) -> int:
    word = np.dtype([("value", elf.layout.byte_order + "u4")])
    if plain_hash is not None:
        return int(elf.records(plain_hash, 2, word)["value"][1:].sum())
    if gnu_hash is None:
        return 0
    head = elf.records(gnu_hash, 4, word)["value"].tolist()
    if len(head) < 4:
        return 0
    buckets_at = gnu_hash + 16 + head[2] * elf.layout.word.itemsize
    buckets = elf.records(buckets_at, min(head[0], MAX_SYMBOLS), word)["value"]
    last = int(buckets.max()) if buckets.size else 0
    if last < head[1]:
        return int(head[1])
    chain_at = buckets_at + 4 * head[0] + 4 * (last - head[1])
    room = max(0, min((elf.size - chain_at) // 4, MAX_SYMBOLS))
    chain = elf.records(chain_at, room, word)["value"]
    ends = np.flatnonzero(chain & 1)
    return last + 1 + int(ends[0]) if ends.size else 0
