# SPDX-License-Identifier: Apache-2.0
"""Inlined calls as columns: what the walk noted of them is read for all calls of one abbreviation at once.

A call without code is left out, and what was inlined into it belongs to what it was inlined into. Where the values of a call make
no sense, all calls of its unit are left out: a chain that lacks one in the middle would be wrong.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.dwarf.abbrev import Abbreviation
from server.symbols.dwarf.constants import ADDRESS_INDEXES, LEB_FORMS, SUPPLEMENT_REFERENCES, UNIT_REFERENCES, Attribute, Form
from server.symbols.dwarf.lebs import numbers, slebs, ulebs
from server.symbols.dwarf.range_columns import Lists, Ranges, addresses, joined, read_lists
from server.symbols.dwarf.unit import Unit
from server.symbols.dwarf.walk import NONE, SUPPLEMENT, Found, read_entry

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

MAX_DEPTH = 255
"""Calls inlined into each other; deeper ones are part of the last."""
MAX_RANGES_IN_ALL = 32_000_000
AT_ONCE = 1 << 17
"""Entries read at once."""
_READ = frozenset(
    (Attribute.LOW_PC, Attribute.HIGH_PC, Attribute.RANGES, Attribute.ABSTRACT_ORIGIN, Attribute.CALL_FILE, Attribute.CALL_LINE)
)


@dataclass(frozen=True, slots=True)
class Calls:
    """Functions and inlined calls ("nodes") with their ranges. A parent comes before what is inlined into it."""

    parents: I64
    """NONE for functions."""
    names: U64
    """Offset of the entry that gives the name."""
    call_files: I64
    """Number in the whole program; 0 when not known."""
    call_lines: U64
    depths: I64
    """0 for functions."""
    ranges: Ranges
    twins: tuple[tuple[int, int, int], ...]
    """(start, node, the node that was met first there) of functions that the linker folded into another."""
    broken_units: int


@dataclass(slots=True)
class _Columns:
    """What is read of nodes; rows are numbers of nodes in Found."""

    names: U64
    call_files: I64
    call_lines: U64
    has_code: Bools
    is_broken: Bools
    ranges: list[Ranges]
    count: int = 0


class _Units:
    """Of the unit of each node: what its values are read with."""

    def __init__(self, found: Found) -> None:
        self.units = found.units
        self.of = np.repeat(np.arange(len(found.units)), np.diff([*found.unit_nodes, len(found.owners)]))
        self.starts = np.array([unit.header.start for unit in found.units], np.int64)
        self.places = np.array([unit.data.place for unit in found.units], np.int64)
        self.low_pcs = np.array([unit.low_pc for unit in found.units], np.uint64)
        self.address_bases = np.array([unit.address_base for unit in found.units], np.int64)
        self.range_bases = np.array([unit.range_base for unit in found.units], np.int64)
        data: dict[int, int] = {}
        self.data = np.array([data.setdefault(id(unit.data), len(data)) for unit in found.units], np.int64)
        tables: dict[int, int] = {}
        files: list[int] = []
        self._file_bases, self._file_counts = np.zeros(len(found.units), np.int64), np.zeros(len(found.units), np.uint64)
        for number, unit in enumerate(found.units):  # Units may share one list of files.
            base = tables.setdefault(id(unit.files), len(files))
            files += unit.files if base == len(files) else []
            self._file_bases[number], self._file_counts[number] = base, len(unit.files)
        self._files = np.array([*files, 0], np.int64)

    def file_numbers(self, units: I64, files: U64) -> I64:
        """Numbers of files in the whole program, by number in their unit; 0 for those that it does not have."""
        is_known = files < self._file_counts[units]
        return self._files[np.where(is_known, self._file_bases[units] + files.astype(np.int64), self._files.size - 1)]


def settle(found: Found, check: Callable[[], None]) -> Calls:
    """Read what the walk noted; `check` is called between steps and may raise. Raises Refused."""
    units, owners = _Units(found), np.frombuffer(found.owners, np.int32).astype(np.int64)
    entries, kinds = np.frombuffer(found.entries, np.int64), np.frombuffer(found.kinds, np.int32)
    is_call = owners != NONE
    columns = _Columns(
        names=(units.places[units.of] + entries).view(np.uint64),
        call_files=np.zeros(owners.size, np.int64),
        call_lines=np.zeros(owners.size, np.uint64),
        has_code=~is_call,
        is_broken=np.zeros(owners.size, np.bool_),
        ranges=[
            Ranges(
                np.frombuffer(found.nodes, np.int32).astype(np.int64),
                np.frombuffer(found.starts, np.uint64),
                np.frombuffer(found.ends, np.uint64),
            )
        ],
    )
    for some, kind in _alike(np.flatnonzero(is_call), units, kinds):
        check()
        _read(columns, units, (some, entries[some]), found.shapes[kind])
        if columns.count > MAX_RANGES_IN_ALL:
            raise Refused(BuildStatus.LIMIT, f"inlined calls have more than {MAX_RANGES_IN_ALL} ranges")
    broken = np.unique(units.of[columns.is_broken])
    columns.has_code &= ~(is_call & np.isin(units.of, broken))
    return _kept(found, owners, columns, broken.size)


def _alike(calls: I64, units: _Units, kinds: npt.NDArray[np.int32]) -> Iterator[tuple[I64, int]]:
    """Calls of one abbreviation in one file, some at a time, in the order of the file."""
    likeness = units.data[units.of[calls]] << 32 | kinds[calls]
    calls = calls[np.argsort(likeness, kind="stable")]
    likeness = units.data[units.of[calls]] << 32 | kinds[calls]
    bounds = np.flatnonzero(np.diff(likeness, prepend=-1, append=-1)).tolist()
    for low, high in itertools.pairwise(bounds):
        for first in range(low, high, AT_ONCE):
            some = calls[first : min(high, first + AT_ONCE)]
            yield some, int(kinds[some[0]])


def _read(columns: _Columns, units: _Units, rows: tuple[I64, I64], shape: Abbreviation) -> None:
    """All values of calls with one abbreviation; `rows` are their nodes and the places of their entries."""
    some, entries = rows
    unit = units.of[some]
    first = units.units[int(unit[0])]
    values = _values(first, entries, shape)
    origin = values.get(Attribute.ABSTRACT_ORIGIN)
    if origin is not None:
        form = shape.forms[Attribute.ABSTRACT_ORIGIN]
        if form in SUPPLEMENT_REFERENCES:
            columns.names[some] = np.uint64(SUPPLEMENT) | origin & np.uint64(SUPPLEMENT - 1)
        else:
            base = units.places[unit] + (units.starts[unit] if form in UNIT_REFERENCES else 0)
            columns.names[some] = base.view(np.uint64) + origin
    if Attribute.CALL_FILE in values:
        columns.call_files[some] = units.file_numbers(unit, values[Attribute.CALL_FILE])
    if Attribute.CALL_LINE in values:
        lines = values[Attribute.CALL_LINE]
        columns.call_lines[some] = np.where(lines < np.uint64(1 << 32), lines, 0)
    lists = Lists(
        first.data,
        first.header.shape,
        np.zeros(some.size, np.int64),
        units.low_pcs[unit],
        units.address_bases[unit],
        np.zeros(some.size, np.bool_),
    )
    for ranges in _ranges(lists, units.range_bases[unit], values, shape):
        columns.count += ranges.entries.size
        columns.has_code[some[ranges.entries]] = True
        columns.ranges.append(Ranges(some[ranges.entries], ranges.starts, ranges.ends))
        if columns.count > MAX_RANGES_IN_ALL:
            break
    columns.is_broken[some[lists.is_broken]] = True


def _values(unit: Unit, entries: I64, shape: Abbreviation) -> dict[int, U64]:
    """The wanted attributes of entries with one abbreviation."""
    data, byte_order = np.frombuffer(unit.data.info, np.uint8), unit.data.byte_order
    found: dict[int, U64] = {}
    places = entries + shape.code_bytes
    for attribute, form, constant in shape.attributes:
        size = unit.header.shape.size_of(form)
        is_wanted = attribute in _READ and attribute not in found
        if form == Form.IMPLICIT_CONST:
            if is_wanted:
                found[attribute] = np.full(entries.size, constant, np.int64).view(np.uint64)
        elif size is not None:
            if is_wanted and size <= 8:
                found[attribute] = numbers(data, places, size, byte_order)
            places = places + size
        elif form == Form.SDATA:
            values, places = slebs(data, places)
            found.update({attribute: values.view(np.uint64)} if is_wanted else {})
        elif form in LEB_FORMS:
            number, places = ulebs(data, places)
            found.update({attribute: number} if is_wanted else {})
        else:
            return _one_by_one(unit, entries, shape)
    return found


def _one_by_one(unit: Unit, entries: I64, shape: Abbreviation) -> dict[int, U64]:
    """The same where texts and blocks stand between."""
    rows = [read_entry(unit, place, shape)[0] for place in entries.tolist()]
    return {
        attribute: np.array([row.get(attribute, 0) & (1 << 64) - 1 for row in rows], np.uint64) for attribute in _READ & set(shape.forms)
    }


def _ranges(lists: Lists, range_bases: I64, values: dict[int, U64], shape: Abbreviation) -> Iterator[Ranges]:
    """Where the calls have code."""
    listed, low, high = (values.get(attribute) for attribute in (Attribute.RANGES, Attribute.LOW_PC, Attribute.HIGH_PC))
    every = np.arange(lists.places.size)
    if listed is not None:
        _find_lists(lists, range_bases, listed, is_index=shape.forms[Attribute.RANGES] == Form.RNGLISTX)
        yield from read_lists(lists)
    elif low is not None and high is not None:
        if shape.forms[Attribute.LOW_PC] in ADDRESS_INDEXES:
            low = addresses(lists, every, low)
        if shape.forms[Attribute.HIGH_PC] in ADDRESS_INDEXES:
            high = addresses(lists, every, high)
        elif shape.forms[Attribute.HIGH_PC] != Form.ADDR:
            high = high + low
        yield Ranges(every, low, high).of(low < high)


def _find_lists(lists: Lists, range_bases: I64, values: U64, *, is_index: bool) -> None:
    near = np.minimum(values, np.uint64(1 << 40)).astype(np.int64)
    if lists.shape.version < 5:
        lists.places[:] = near + (range_bases if lists.data.is_split else 0)
    elif not is_index:
        lists.places[:] = near
    else:
        width, data = lists.shape.offset_bytes, np.frombuffer(lists.data.range_lists, np.uint8)
        places = range_bases + near * width
        is_there = (places >= 0) & (places <= data.size - width)
        lists.is_broken[~is_there] = True
        offsets = numbers(data, np.where(is_there, places, 0), width, lists.shape.byte_order) if is_there.any() else values
        lists.places[:] = np.where(is_there, range_bases + np.minimum(offsets, np.uint64(1 << 40)).astype(np.int64), data.size)


def _kept(found: Found, owners: I64, columns: _Columns, broken_units: int) -> Calls:
    """Nodes with code, numbered anew."""
    every = np.arange(owners.size)
    onward = np.where(columns.has_code, every, owners)
    while not np.array_equal(further := onward[onward], onward):
        onward = further
    parents = np.where(owners == NONE, every, onward[owners])
    depths = _depths(parents, columns.has_code & (owners != NONE))
    is_kept = columns.has_code & (depths <= MAX_DEPTH)
    numbers_now = np.cumsum(is_kept) - 1
    parents = np.where(owners == NONE, NONE, numbers_now[parents])[is_kept]
    ranges = joined(columns.ranges)
    ranges = ranges.of(is_kept[ranges.entries])
    order = np.argsort(ranges.entries, kind="stable")
    ranges = Ranges(numbers_now[ranges.entries[order]], ranges.starts[order], ranges.ends[order])
    twins = tuple((start, int(numbers_now[node]), int(numbers_now[found.first_at[start]])) for start, node in found.twins)
    kept = (columns.names[is_kept], columns.call_files[is_kept], columns.call_lines[is_kept], depths[is_kept])
    return Calls(parents, *kept, ranges, twins, broken_units)


def _depths(parents: I64, is_call: Bools) -> I64:
    """How many calls each node is inside of, itself included; twice as far up at each step."""
    depths, above = is_call.astype(np.int64), parents
    while (more := depths[above]).any():
        depths, above = depths + more, above[above]
    return depths
