# SPDX-License-Identifier: Apache-2.0
"""Walks the entries of a unit and notes functions and inlined calls: where functions are, and what is in what.

The walk is the price of a table: millions of entries, most of which are types. What cannot hold code is stepped over by a number
looked up by its first byte, or as a whole subtree where the compiler gives the sibling. Of an inlined call only the place is noted;
its values are read later, for all of one kind at once (calls.py). Names are not touched here either (naming.py).
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.abbrev import CLASSES, WANTED, Abbreviation, Values, step_over
from server.symbols.dwarf.constants import ADDRESS_INDEXES, UNIT_REFERENCES, Attribute, Form, Tag
from server.symbols.dwarf.rangelist import ranges_of
from server.symbols.dwarf.shape import DwarfError, uleb
from server.symbols.dwarf.unit import Unit

U64 = npt.NDArray[np.uint64]

NONE = -1
COPY = -2
SUPPLEMENT = 1 << 62
"""Added to offsets of entries in the common file of dwz."""
MAX_NODES = 32_000_000


@dataclass(slots=True)
class Found:
    """Functions and inlined calls ("nodes") of all units, as they are met, and the ranges of the functions."""

    code_starts: list[int]
    code_ends: list[int]
    """Executable sections, sorted: a function outside of them was thrown away by the linker."""
    owners: "array[int]" = field(default_factory=lambda: array("i"))
    """The node that a call was met in; NONE for functions."""
    entries: "array[int]" = field(default_factory=lambda: array("q"))
    """Where its entry lies in its .debug_info."""
    kinds: "array[int]" = field(default_factory=lambda: array("i"))
    """Number of its abbreviation in `shapes`."""
    shapes: list[Abbreviation] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    unit_nodes: list[int] = field(default_factory=list)
    """The first node of each unit."""
    starts: "array[int]" = field(default_factory=lambda: array("Q"))
    ends: "array[int]" = field(default_factory=lambda: array("Q"))
    nodes: "array[int]" = field(default_factory=lambda: array("i"))
    folded: dict[int, bytes] = field(default_factory=dict)
    """Name of the symbol by start, where the linker has folded several functions into one; elsewhere further functions at one start are
    copies of the first (the compiler makes one per unit, the linker keeps one)."""
    first_at: dict[int, int] = field(default_factory=dict)
    """The function that was met first at each start."""
    twins: list[tuple[int, int]] = field(default_factory=list)
    """(start, node) of functions that were folded into the first one."""

    def is_code(self, start: int, end: int) -> bool:
        """True for a range inside one executable section."""
        section = bisect_right(self.code_starts, start) - 1
        return section >= 0 and end <= self.code_ends[section]

    def are_code(self, starts: U64, ends: U64) -> npt.NDArray[np.bool_]:
        """The same for many ranges; empty ones are none."""
        if not self.code_starts:
            return np.zeros(starts.size, np.bool_)
        section = np.searchsorted(np.array(self.code_starts, np.uint64), starts, "right") - 1
        return (section >= 0) & (ends > starts) & (ends <= np.array(self.code_ends, np.uint64)[np.maximum(section, 0)])

    def number(self, shape: Abbreviation) -> int:
        """Where an abbreviation stands in `shapes`."""
        if shape.number < 0:
            shape.number = len(self.shapes)
            self.shapes.append(shape)
        return shape.number

    def forget_from(self, nodes: int, ranges: int) -> None:
        """Drop what a unit gave that turned out to be broken."""
        for column in (self.owners, self.entries, self.kinds):
            del column[nodes:]
        for column in (self.starts, self.ends, self.nodes):
            del column[ranges:]
        self.first_at = {start: node for start, node in self.first_at.items() if node < nodes}
        self.twins = [(start, node) for start, node in self.twins if node < nodes]


def walk(unit: Unit, found: Found) -> None:  # noqa: PLR0912 -- a call per entry would double the time
    """Note the code of one unit. Raises DwarfError, having noted a part."""
    info, end, shape = unit.data.info, unit.header.end, unit.header.shape
    sizes, by_code = unit.table.sizes, unit.table.by_code
    found.units.append(unit)
    found.unit_nodes.append(len(found.owners))
    put_owner, put_entry, put_kind = found.owners.append, found.entries.append, found.kinds.append
    place, owner = unit.header.root, NONE
    owners: list[int] = []
    while place < end:
        while place < end and (step := sizes[info[place]]):
            place += step
        if place >= end:
            return
        first = info[place]
        if not first:
            if len(owners) < 2:
                return
            place += 1
            owner = owners.pop()
            continue
        abbreviation = by_code.get(first if first < 0x80 else uleb(info, place)[0])
        if abbreviation is None:
            raise DwarfError(f"unknown abbreviation at {place}")
        node = owner
        if abbreviation.is_call:
            if owner != NONE:
                node = len(found.owners)
                put_owner(owner)
                put_entry(place)
                put_kind(found.number(abbreviation) if abbreviation.number < 0 else abbreviation.number)
            place = place + abbreviation.size if abbreviation.size is not None else step_over(info, place, abbreviation.steps, shape)
            if place > end:
                raise DwarfError(f"entry before {place} is cut")
        elif abbreviation.is_code:
            node, place = _function(unit, found, place, abbreviation)
            if node == COPY:
                continue
        elif abbreviation.sibling is not None and (owner == NONE or abbreviation.tag not in CLASSES):
            place = _jump(unit, place, abbreviation)
            continue
        elif abbreviation.size is not None:
            place += abbreviation.size
        else:
            place = step_over(info, place, abbreviation.steps, shape)
        if abbreviation.has_children:
            owners.append(owner)
            owner = NONE if abbreviation.tag == Tag.SUBPROGRAM and not abbreviation.is_code else node


def _jump(unit: Unit, place: int, abbreviation: Abbreviation) -> int:
    shape, info = unit.header.shape, unit.data.info
    if abbreviation.sibling_at is not None:
        return _onward(unit, place, unit.header.start + shape.number(info, place + abbreviation.sibling_at, 4))
    at = step_over(info, place, abbreviation.steps_to_sibling, shape)
    form = abbreviation.forms[Attribute.SIBLING]
    value, _ = shape.value(info, at, form)
    return _onward(unit, place, int(value) + (unit.header.start if form in UNIT_REFERENCES else 0))


def _onward(unit: Unit, place: int, target: int) -> int:
    if not place < target <= unit.header.end:
        raise DwarfError(f"sibling of {place} at {target}")
    return target


def _function(unit: Unit, found: Found, place: int, abbreviation: Abbreviation) -> tuple[int, int]:
    """The node of a function (NONE when it has no code that counts) and the place behind its entry; COPY and the place behind
    all that is in it for a further copy of a function.
    """
    if abbreviation.take is not None and abbreviation.size is not None:
        if place + abbreviation.size > unit.header.end:
            raise DwarfError(f"entry at {place} is cut")
        values, behind = abbreviation.take(unit.data.info, place), place + abbreviation.size
    else:
        by_attribute, behind = read_entry(unit, place, abbreviation)
        values = tuple([by_attribute.get(attribute) for attribute in WANTED])
    ranges = [(start, end) for start, end in _ranges(unit, abbreviation, values) if found.is_code(start, end)]
    if not ranges:
        return NONE, behind
    start, node = ranges[0][0], len(found.owners)
    if found.first_at.setdefault(start, node) != node:
        if start not in found.folded:
            sibling = values[WANTED.index(Attribute.SIBLING)]
            if not abbreviation.has_children or sibling is None or abbreviation.forms[Attribute.SIBLING] not in UNIT_REFERENCES:
                return NONE, behind
            return COPY, _onward(unit, place, unit.header.start + sibling)
        found.twins.append((start, node))
    if node >= MAX_NODES:
        raise DwarfError(f"more than {MAX_NODES} functions and inlined calls")
    for low, high in ranges:
        found.starts.append(low)
        found.ends.append(high)
        found.nodes.append(node)
    found.owners.append(NONE)
    found.entries.append(place)
    found.kinds.append(found.number(abbreviation))
    return node, behind


def read_entry(unit: Unit, place: int, abbreviation: Abbreviation) -> tuple[dict[int, int], int]:
    """The wanted values of an entry by attribute, and the place behind it."""
    shape, info = unit.header.shape, unit.data.info
    place += abbreviation.code_bytes
    found: dict[int, int] = {}
    for attribute, form, constant in abbreviation.attributes:
        value, place = shape.value(info, place, form)
        if attribute in _WANTED:
            found.setdefault(attribute, constant if form == Form.IMPLICIT_CONST else int(value))
    return found, place


_WANTED = frozenset(WANTED)


def _ranges(unit: Unit, abbreviation: Abbreviation, values: Values) -> list[tuple[int, int]]:
    low, high, listed = values[:3]
    if abbreviation.has_one_range and low is not None and high:
        return [(low, low + high)] if 0 < high < (1 << 64) - low else []
    forms = abbreviation.forms
    if listed is not None:
        return ranges_of(unit, forms[Attribute.RANGES], listed)
    if low is None or high is None:
        return []
    if forms[Attribute.LOW_PC] in ADDRESS_INDEXES:
        low = unit.address(low)
    if forms[Attribute.HIGH_PC] in ADDRESS_INDEXES:
        high = unit.address(high)
    elif forms[Attribute.HIGH_PC] != Form.ADDR:
        high += low
    return [(low, high)] if low < high < 1 << 64 else []
