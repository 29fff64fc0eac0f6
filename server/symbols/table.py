# SPDX-License-Identifier: Apache-2.0
"""The table file: what one binary's code is called, ready to be searched where it lies (memory-mapped).

    header   magic 8 | version u32 | kind u32 | build id kind u32 | quality u32 | traits u32 | sections u32
             build id length u32, 64 bytes | content hash length u32, 16 bytes | checksum 16 | zeros up to 192
    entries  per section: number u32, width of its items u32 (1, 2, 4 or 8 bytes), offset u64, size in bytes u64
    sections each starts at a multiple of 8

Numbers are little endian. The checksum is BLAKE2b-128 over everything behind the header. Sections whose number is not known are
skipped; those of inline chains and lines (server/symbols/inlines.py) are there when the binary has debug data, and as narrow as
their numbers allow. A file that breaks any promise is refused as a whole and made again.
"""

import hashlib
import mmap
import os
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from server.errors import ServerError
from server.symbols.build_result import Quality
from server.symbols.identity import CONTENT_HASH_BYTES, MAX_BUILD_ID_BYTES, BinaryKey
from server.symbols.inlines import Inlines
from server.symbols.symtab import FLAG_INEXACT, FLAG_UNNAMED, I64, U8, U64, Symbols

MAGIC = b"EWNAMES\0"
VERSION = 2
HEADER_BYTES = 192
MAX_SECTIONS = 64
_HEAD = struct.Struct(f"<8sIIIIIII{MAX_BUILD_ID_BYTES}sI{CONTENT_HASH_BYTES}s16s")
CHECKSUM_AT = _HEAD.size - 16
_ENTRY = struct.Struct("<IIQQ")


class TableError(ServerError):
    """A table file that cannot be used; it is dropped and made again."""


class Traits(IntFlag):
    """What is known of the whole binary."""

    NONE = 0
    GO = 1
    SPLIT = 2
    """Inlined calls of some units are in .dwo files that were not there."""


class _Section(IntEnum):
    STARTS = 1
    ENDS = 2
    FLAGS = 3
    NAME_BOUNDS = 4
    NAMES = 5
    ALIAS_SYMBOLS = 6
    ALIAS_BOUNDS = 7
    ALIASES = 8
    BASE = 9
    PLACE_STARTS = 10
    PLACE_NODES = 11
    PLACE_FILES = 12
    PLACE_LINES = 13
    NODE_PARENTS = 14
    NODE_NAMES = 15
    NODE_FILES = 16
    NODE_LINES = 17
    TEXT_BOUNDS = 18
    TEXTS = 19


_INLINE_COLUMNS = (
    (_Section.PLACE_STARTS, "starts"),
    (_Section.PLACE_NODES, "place_nodes"),
    (_Section.PLACE_FILES, "place_files"),
    (_Section.PLACE_LINES, "place_lines"),
    (_Section.NODE_PARENTS, "node_parents"),
    (_Section.NODE_NAMES, "node_names"),
    (_Section.NODE_FILES, "node_files"),
    (_Section.NODE_LINES, "node_lines"),
    (_Section.TEXT_BOUNDS, "text_bounds"),
    (_Section.TEXTS, "texts"),
)


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table says of itself."""

    key: BinaryKey
    quality: Quality
    traits: Traits


class Table:
    """A table file, open for search. Arrays are views of the mapped file; do not write to them."""

    def __init__(self, facts: TableFacts, symbols: Symbols, size_bytes: int, inlines: Inlines | None = None) -> None:
        self.facts = facts
        self.size_bytes = size_bytes
        self.inlines = inlines
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

    def starts(self, symbols: I64) -> U64:
        """Where these symbols start."""
        starts: U64 = self._symbols.starts[symbols]
        return starts

    def raw_names(self, symbols: I64) -> list[bytes]:
        """The names of these symbols as the binary has them; b"" for functions that only the unwind tables know."""
        return _texts(self._symbols.blob, self._symbols.name_bounds, symbols)

    def aliases(self, symbol: int) -> list[bytes]:
        """Other names of the same code, by length and then by bytes."""
        low, high = np.searchsorted(self._symbols.alias_symbols, [symbol, symbol + 1]).tolist()
        return _texts(self._symbols.alias_blob, self._symbols.alias_bounds, np.arange(low, high))

    def is_inexact(self, symbols: I64) -> npt.NDArray[np.bool_]:
        """True for symbols that had no size in the binary."""
        return np.asarray((self._symbols.flags[symbols] & FLAG_INEXACT) != 0)

    def is_unnamed(self, symbols: I64) -> npt.NDArray[np.bool_]:
        """True for functions whose bounds are known and whose name is not."""
        return np.asarray((self._symbols.flags[symbols] & FLAG_UNNAMED) != 0)


def _texts(blob: U8, bounds: npt.NDArray[np.integer], rows: I64) -> list[bytes]:
    return [blob[low:high].tobytes() for low, high in zip(bounds[rows].tolist(), bounds[rows + 1].tolist(), strict=True)]


def table_bytes(facts: TableFacts, symbols: Symbols, inlines: Inlines | None = None) -> bytes:
    """The whole file."""
    columns: list[tuple[_Section, npt.NDArray[np.generic]]] = [
        (_Section.STARTS, symbols.starts),
        (_Section.ENDS, symbols.ends),
        (_Section.FLAGS, symbols.flags),
        (_Section.NAME_BOUNDS, symbols.name_bounds),
        (_Section.NAMES, symbols.blob),
        (_Section.ALIAS_SYMBOLS, symbols.alias_symbols),
        (_Section.ALIAS_BOUNDS, symbols.alias_bounds),
        (_Section.ALIASES, symbols.alias_blob),
    ]
    if inlines is not None:
        columns.append((_Section.BASE, np.array([inlines.base], np.uint64)))
        columns += [(section, getattr(inlines, name)) for section, name in _INLINE_COLUMNS]
    offset = HEADER_BYTES + _ENTRY.size * len(columns)
    entries, parts = [], []
    for section, column in columns:
        data = column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
        entries.append(_ENTRY.pack(section, column.itemsize, offset, len(data)))
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
    columns = _columns(view, count)
    symbols = _symbols(columns)
    return Table(facts, symbols, size, _inlines(columns))


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


Columns = dict[int, npt.NDArray[np.unsignedinteger]]


def _columns(view: mmap.mmap, count: int) -> Columns:
    found: Columns = {}
    for index in range(count):
        place = HEADER_BYTES + index * _ENTRY.size
        if place + _ENTRY.size > len(view):
            raise TableError("table entries are cut")
        number, width, offset, size = _ENTRY.unpack_from(view, place)
        if offset % 8 or offset > len(view) or size > len(view) - offset:
            raise TableError(f"table section {number} lies outside the file")
        if width not in (1, 2, 4, 8) or size % width:
            raise TableError(f"table section {number} holds no numbers of {width} bytes")
        found[number] = np.frombuffer(view, f"<u{width}", size // width, offset)
    return found


def _symbols(columns: Columns) -> Symbols:
    """The child that wrote this may have been taken over by its input: whatever search relies on is checked."""

    def column(section: _Section, width: int) -> npt.NDArray[np.unsignedinteger]:
        numbers = columns.get(section, np.zeros(0, f"<u{width}"))
        if numbers.itemsize != width:
            raise TableError(f"table section {section} has numbers of {numbers.itemsize} bytes")
        return numbers

    symbols = Symbols(
        starts=column(_Section.STARTS, 8),
        ends=column(_Section.ENDS, 8),
        flags=column(_Section.FLAGS, 1),
        name_bounds=column(_Section.NAME_BOUNDS, 8),
        blob=column(_Section.NAMES, 1),
        alias_symbols=column(_Section.ALIAS_SYMBOLS, 4),
        alias_bounds=column(_Section.ALIAS_BOUNDS, 8),
        alias_blob=column(_Section.ALIASES, 1),
    )
    count, aliases = symbols.starts.size, symbols.alias_symbols
    if symbols.ends.size != count or symbols.flags.size != count:
        raise TableError("table columns differ in length")
    if not bool(np.all(symbols.starts[1:] >= symbols.ends[:-1]) and np.all(symbols.ends >= symbols.starts)):
        raise TableError("table is not sorted")
    _check_bounds(symbols.name_bounds, count, symbols.blob.size)
    _check_bounds(symbols.alias_bounds, aliases.size, symbols.alias_blob.size)
    if np.any(aliases[1:] < aliases[:-1]) or (aliases.size and int(aliases[-1]) >= count):
        raise TableError("aliases are not sorted")
    return symbols


def _check_bounds(bounds: npt.NDArray[np.unsignedinteger], count: int, size: int) -> None:
    if bounds.size != count + 1 or bool(np.any(bounds[1:] < bounds[:-1])) or int(bounds[-1]) > size:
        raise TableError("bounds of names are not sorted")


def _inlines(columns: Columns) -> Inlines | None:
    if _Section.PLACE_STARTS not in columns:
        return None
    needed = (_Section.BASE, *(section for section, _ in _INLINE_COLUMNS))
    if any(section not in columns for section in needed) or columns[_Section.BASE].size != 1 or columns[_Section.TEXTS].itemsize != 1:
        raise TableError("inline chains are not whole")
    inlines = Inlines(int(columns[_Section.BASE][0]), **{name: columns[section] for section, name in _INLINE_COLUMNS})
    flaw = inlines.flaw()
    if flaw:
        raise TableError(f"inline chains make no sense: {flaw}")
    return inlines
