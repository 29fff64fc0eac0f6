# SPDX-License-Identifier: Apache-2.0
"""Address ranges of many entries at once: every list is read one step further at a time (rangelist.py reads one list by itself)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.lebs import numbers, ulebs
from server.symbols.dwarf.rangelist import (
    MAX_RANGES,
    RLE_BASE,
    RLE_BASE_X,
    RLE_END,
    RLE_OFFSET_PAIR,
    RLE_START_END,
    RLE_START_LENGTH,
    RLE_STARTX_ENDX,
    RLE_STARTX_LENGTH,
)
from server.symbols.dwarf.shape import Shape
from server.symbols.dwarf.source import DebugData

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

_STEPS = range(RLE_START_LENGTH + 1)


@dataclass(slots=True)
class Lists:
    """Range lists of entries in units of one file and shape; entry i has place i."""

    data: DebugData
    shape: Shape
    places: I64
    bases: U64
    """What offsets are added to: where the code of the unit begins, until a list says otherwise."""
    address_bases: I64
    """Where the addresses of the unit begin among those of all."""
    is_broken: Bools


@dataclass(frozen=True, slots=True)
class Ranges:
    """Half open, none of them empty; in the order of their list for each entry."""

    entries: I64
    starts: U64
    ends: U64

    def of(self, wanted: Bools) -> "Ranges":
        """Those that are wanted."""
        return Ranges(self.entries[wanted], self.starts[wanted], self.ends[wanted])


def joined(pieces: list[Ranges]) -> Ranges:
    """All in one."""
    return Ranges(
        np.concatenate([np.zeros(0, np.int64), *[piece.entries for piece in pieces]]),
        np.concatenate([np.zeros(0, np.uint64), *[piece.starts for piece in pieces]]),
        np.concatenate([np.zeros(0, np.uint64), *[piece.ends for piece in pieces]]),
    )


def read_lists(lists: Lists) -> Iterator[Ranges]:
    """Ranges of all entries, a step at a time; entries whose list makes no sense are marked as broken, and may have given some."""
    section, step = (lists.data.range_lists, _step) if lists.shape.version >= 5 else (lists.data.ranges, _old_step)
    data = np.frombuffer(section, np.uint8)
    going = np.arange(lists.places.size)
    for _ in range(MAX_RANGES):
        if not going.size:
            return
        found, going = step(lists, data, going)
        if found.entries.size:
            yield found.of(found.starts < found.ends)
    lists.is_broken[going] = True


def addresses(lists: Lists, entries: I64, indexes: U64) -> U64:
    """Entries of .debug_addr by their number in the unit; an entry that asks for one that is not there is broken, and gets 0."""
    width, table = lists.shape.address_bytes, np.frombuffer(lists.data.addresses, np.uint8)
    most = np.uint64(table.size)
    places = lists.address_bases[entries] + np.minimum(indexes, most).astype(np.int64) * width
    return _checked(lists, table, entries, places)


def _checked(lists: Lists, data: U8, entries: I64, places: I64) -> U64:
    """Addresses at places that may not be there."""
    width = lists.shape.address_bytes
    is_there = (places >= 0) & (places <= data.size - width)
    lists.is_broken[entries[~is_there]] = True
    found = np.zeros(entries.size, np.uint64)
    found[is_there] = numbers(data, places[is_there], width, lists.shape.byte_order)
    return found


def _old_step(lists: Lists, data: U8, going: I64) -> tuple[Ranges, I64]:
    """Two addresses: a range, a new base behind the highest address, or two zeros at the end."""
    width = lists.shape.address_bytes
    places = lists.places[going]
    firsts, seconds = _checked(lists, data, going, places), _checked(lists, data, going, places + width)
    lists.places[going] = places + 2 * width
    is_whole = ~lists.is_broken[going]
    is_base = is_whole & (firsts == np.uint64((1 << 8 * width) - 1))
    lists.bases[going[is_base]] = seconds[is_base]
    is_range = is_whole & ~is_base & (firsts < seconds)
    some = going[is_range]
    bases = lists.bases[some]
    is_end = (firsts == 0) & (seconds == 0)
    return Ranges(some, bases + firsts[is_range], bases + seconds[is_range]), going[is_whole & ~is_end]


def _step(lists: Lists, data: U8, going: I64) -> tuple[Ranges, I64]:
    """One entry of DWARF 5's lists, of each list that goes on."""
    is_there = lists.places[going] < data.size
    lists.is_broken[going[~is_there]] = True
    going = going[is_there]
    kinds = data[lists.places[going]]
    lists.places[going] += 1
    counts = np.bincount(kinds, minlength=256)
    found = []
    for kind in _STEPS:
        if counts[kind]:
            some = going[kinds == kind]
            firsts, seconds = _READERS[kind](lists, data, some)
            if firsts.size:
                found.append(Ranges(some, firsts, seconds))
    lists.is_broken[going[kinds > RLE_START_LENGTH]] = True
    return joined(found), going[(kinds != RLE_END) & ~lists.is_broken[going]]


_NONE = np.zeros(0, np.uint64)
_Reader = Callable[[Lists, U8, I64], tuple[U64, U64]]


def _end(_lists: Lists, _data: U8, _some: I64) -> tuple[U64, U64]:
    return _NONE, _NONE


def _number(lists: Lists, data: U8, some: I64) -> U64:
    values, lists.places[some] = ulebs(data, lists.places[some])
    return values


def _address(lists: Lists, data: U8, some: I64) -> U64:
    values = _checked(lists, data, some, lists.places[some])
    lists.places[some] += lists.shape.address_bytes
    return values


def _base(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    lists.bases[some] = _address(lists, data, some)
    return _NONE, _NONE


def _base_by_number(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    lists.bases[some] = addresses(lists, some, _number(lists, data, some))
    return _NONE, _NONE


def _offsets(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    firsts, seconds = _number(lists, data, some), _number(lists, data, some)
    return lists.bases[some] + firsts, lists.bases[some] + seconds


def _start_end(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    return _address(lists, data, some), _address(lists, data, some)


def _start_length(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    firsts = _address(lists, data, some)
    return firsts, firsts + _number(lists, data, some)


def _numbered_start_end(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    firsts = addresses(lists, some, _number(lists, data, some))
    return firsts, addresses(lists, some, _number(lists, data, some))


def _numbered_start_length(lists: Lists, data: U8, some: I64) -> tuple[U64, U64]:
    firsts = addresses(lists, some, _number(lists, data, some))
    return firsts, firsts + _number(lists, data, some)


_READERS: dict[int, _Reader] = {
    RLE_END: _end,
    RLE_BASE_X: _base_by_number,
    RLE_STARTX_ENDX: _numbered_start_end,
    RLE_STARTX_LENGTH: _numbered_start_length,
    RLE_OFFSET_PAIR: _offsets,
    RLE_BASE: _base,
    RLE_START_END: _start_end,
    RLE_START_LENGTH: _start_length,
}
