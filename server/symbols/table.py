# SPDX-License-Identifier: Apache-2.0
"""The table file: what one binary's code is called, ready to be searched where it lies (memory-mapped).

    header   magic 8 | version u32 | kind u32 | build id kind u32 | quality u32 | traits u32 | sections u32
             build id length u32, 64 bytes | content hash length u32, 16 bytes | checksum 16 | zeros up to 192
    entries  per section: number u32, zero u32, offset u64, size in bytes u64
    sections each starts at a multiple of 8

Numbers are little endian. The checksum is BLAKE2b-128 over everything behind the header. Sections whose number is not known are
skipped: lines and inline chains get their own. A file that breaks any promise is refused as a whole and made again.
"""

import hashlib
import mmap
import os
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np

from server.errors import ServerError
from server.symbols.identity import CONTENT_HASH_BYTES, MAX_BUILD_ID_BYTES, BinaryKey
from server.symbols.symtab import FLAG_INEXACT, I64, U64, Symbols

MAGIC = b"EWNAMES\0"
VERSION = 1
HEADER_BYTES = 192
MAX_SECTIONS = 64
_HEAD = struct.Struct(f"<8sIIIIIII{MAX_BUILD_ID_BYTES}sI{CONTENT_HASH_BYTES}s16s")
_ENTRY = struct.Struct("<IIQQ")


class TableError(ServerError):
    """A table file that cannot be used; it is dropped and made again."""


class Quality(IntEnum):
    """How much the sources of a table know; a better one replaces a poorer one."""

    EMPTY = 0
    DYNAMIC = 1
    FULL = 2


class Traits(IntFlag):
    """What is known of the whole binary."""

    NONE = 0
    GO = 1


class _Section(IntEnum):
    STARTS = 1
    ENDS = 2
    FLAGS = 3
    NAME_BOUNDS = 4
    NAMES = 5


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table says of itself."""

    key: BinaryKey
    quality: Quality
    traits: Traits


class Table:
    """A table file, open for search. Arrays are views of the mapped file; do not write to them."""

    def __init__(self, facts: TableFacts, symbols: Symbols, size_bytes: int) -> None:
        self.facts = facts
        self.size_bytes = size_bytes
        self._symbols = symbols

    def __len__(self) -> int:
        return len(self._symbols)

    def find(self, addresses: U64) -> I64:
        """The symbol that holds each address, -1 where none does."""
        starts, ends = self._symbols.starts, self._symbols.ends
        if not starts.size:
            return np.full(addresses.size, -1, np.int64)
        found = np.searchsorted(starts, addresses, "right") - 1
        return np.where((found >= 0) & (addresses < ends[found]), found, -1)

    def raw_names(self, symbols: I64) -> list[bytes]:
        """The names of these symbols as the binary has them."""
        lows, highs = self._symbols.name_bounds[symbols].tolist(), self._symbols.name_bounds[symbols + 1].tolist()
        return [self._symbols.blob[low:high].tobytes() for low, high in zip(lows, highs, strict=True)]

    def is_inexact(self, symbol: int) -> bool:
        """True when the symbol had no size in the binary."""
        return bool(self._symbols.flags[symbol] & FLAG_INEXACT)


def table_bytes(facts: TableFacts, symbols: Symbols) -> bytes:
    """The whole file."""
    columns: list[tuple[_Section, bytes]] = [
        (_Section.STARTS, symbols.starts.astype("<u8").tobytes()),
        (_Section.ENDS, symbols.ends.astype("<u8").tobytes()),
        (_Section.FLAGS, symbols.flags.tobytes()),
        (_Section.NAME_BOUNDS, symbols.name_bounds.astype("<u8").tobytes()),
        (_Section.NAMES, symbols.blob.tobytes()),
    ]
    offset = HEADER_BYTES + _ENTRY.size * len(columns)
    entries, parts = [], []
    for section, data in columns:
        entries.append(_ENTRY.pack(section, 0, offset, len(data)))
        parts.append(data + bytes(-len(data) % 8))
        offset += len(parts[-1])
    body = b"".join([*entries, *parts])
    key = facts.key
    identity = (len(key.build_id), key.build_id, len(key.content_hash), key.content_hash)
    head = (MAGIC, VERSION, key.kind, key.build_id_kind, facts.quality, facts.traits, len(columns), *identity)
    return _HEAD.pack(*head, _checksum(body)).ljust(HEADER_BYTES, b"\0") + body


def open_table(descriptor: int, expected: BinaryKey) -> Table:
    """Map a table file and check it. The descriptor may be closed afterwards. Raises TableError."""
    size = os.fstat(descriptor).st_size
    if size < HEADER_BYTES:
        raise TableError(f"table of {size} bytes is cut")
    try:
        view = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
    except OSError as error:
        raise TableError(f"map a table of {size} bytes: {error}") from error
    facts, count, checksum = _facts(view[:HEADER_BYTES])
    if facts.key != expected:
        raise TableError("table belongs to another binary")
    if _checksum(memoryview(view)[HEADER_BYTES:]) != checksum:
        raise TableError("table does not pass its checksum")
    return Table(facts, _sections(view, count), size)


def _checksum(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def _facts(header: bytes) -> tuple[TableFacts, int, bytes]:
    magic, version, kind, id_kind, quality, traits, sections, id_length, build_id, hash_length, content, checksum = _HEAD.unpack_from(
        header
    )
    if magic != MAGIC or version != VERSION:
        raise TableError("not a table of this version")
    if id_length > MAX_BUILD_ID_BYTES or hash_length > CONTENT_HASH_BYTES or sections > MAX_SECTIONS or quality > max(Quality):
        raise TableError("table header makes no sense")
    key = BinaryKey(kind, id_kind, build_id[:id_length], content[:hash_length])
    return TableFacts(key, Quality(quality), Traits(traits)), sections, checksum


def _sections(view: mmap.mmap, count: int) -> Symbols:
    found: dict[int, tuple[int, int]] = {}
    for index in range(count):
        place = HEADER_BYTES + index * _ENTRY.size
        if place + _ENTRY.size > len(view):
            raise TableError("table entries are cut")
        number, _, offset, size = _ENTRY.unpack_from(view, place)
        if offset % 8 or offset > len(view) or size > len(view) - offset:
            raise TableError(f"table section {number} lies outside the file")
        found[number] = (offset, size)

    def column(section: _Section, dtype: str) -> memoryview:
        offset, size = found.get(section, (0, 0))
        return memoryview(view)[offset : offset + size - size % np.dtype(dtype).itemsize]

    starts, ends, bounds = (np.frombuffer(column(s, "<u8"), "<u8") for s in (_Section.STARTS, _Section.ENDS, _Section.NAME_BOUNDS))
    flags, blob = (np.frombuffer(column(s, "u1"), np.uint8) for s in (_Section.FLAGS, _Section.NAMES))
    symbols = Symbols(starts, ends, flags, bounds, blob)
    _check(symbols)
    return symbols


def _check(symbols: Symbols) -> None:
    """The child that wrote this may have been taken over by its input: whatever search relies on is checked."""
    count = symbols.starts.size
    if symbols.ends.size != count or symbols.flags.size != count or symbols.name_bounds.size != count + 1:
        raise TableError("table columns differ in length")
    is_sorted = bool(np.all(symbols.starts[1:] >= symbols.ends[:-1]) and np.all(symbols.ends >= symbols.starts))
    bounds = symbols.name_bounds
    if not is_sorted or bool(np.any(bounds[1:] < bounds[:-1])) or int(bounds[-1]) > symbols.blob.size:
        raise TableError("table is not sorted")
