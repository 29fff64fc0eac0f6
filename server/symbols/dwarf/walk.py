# SPDX-License-Identifier: Apache-2.0
"""Walks the entries of a unit and notes functions and inlined calls: where they are, what is in what, and where they were called.

The walk is the price of a table: millions of entries, most of which are types. What cannot hold code is stepped over by a number
looked up by its first byte, or as a whole subtree where the compiler gives the sibling. Names are not touched here: an entry is
noted by the offset of the entry that names it, and each of those is read once (naming.py).
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.abbrev import CLASSES, WANTED, Abbreviation, Values, step_over
from server.symbols.dwarf.constants import ADDRESS_INDEXES, SUPPLEMENT_REFERENCES, UNIT_REFERENCES, Attribute, Form, Tag
from server.symbols.dwarf.rangelist import ranges_of
from server.symbols.dwarf.shape import DwarfError, uleb
from server.symbols.dwarf.unit import Unit

U64 = npt.NDArray[np.uint64]

NONE = -1
SUPPLEMENT = 1 << 62
"""Added to offsets of entries in the common file of dwz."""
MAX_DEPTH = 255
"""Calls inlined into each other; deeper ones are part of the last."""
MAX_NODES = 32_000_000


@dataclass(slots=True)
class Found:
    """Functions and inlined calls ("nodes") of all units, and their ranges. A parent comes before what is inlined into it."""

    code_starts: list[int]
    code_ends: list[int]
    """Executable sections, sorted: a function outside of them was thrown away by the linker."""
    parents: "array[int]" = field(default_factory=lambda: array("i"))
    names: "array[int]" = field(default_factory=lambda: array("Q"))
    """Offset of the entry that gives the name."""
    call_files: "array[int]" = field(default_factory=lambda: array("I"))
    """Number in the whole program; 0 when not known."""
    call_lines: "array[int]" = field(default_factory=lambda: array("I"))
    depths: "array[int]" = field(default_factory=lambda: array("B"))
    """0 for functions."""
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

    def forget_from(self, nodes: int, ranges: int) -> None:
        """Drop what a unit gave that turned out to be broken."""
        for column in (self.parents, self.names, self.call_files, self.call_lines, self.depths):
            del column[nodes:]
        for column in (self.starts, self.ends, self.nodes):
            del column[ranges:]
        self.first_at = {start: node for start, node in self.first_at.items() if node < nodes}
        self.twins = [(start, node) for start, node in self.twins if node < nodes]


def walk(unit: Unit, found: Found) -> None:
    """Note the code of one unit. Raises DwarfError, having noted a part."""
    info, end, shape = unit.data.info, unit.header.end, unit.header.shape
    sizes, by_code = unit.table.sizes, unit.table.by_code
    place, owner = unit.header.root, NONE
    owners: list[int] = []
    while place < end:
        first = info[place]
        step = sizes[first]
        if step:
            place += step
            continue
        if not first:
            place += 1
            if not owners:
                return
            owner = owners.pop()
            if not owners:
                return
            continue
        abbreviation = by_code.get(first if first < 0x80 else uleb(info, place)[0])
        if abbreviation is None:
            raise DwarfError(f"unknown abbreviation at {place}")
        node = owner
        if abbreviation.is_code:
            node, place = _note(unit, found, (place, abbreviation), owner)
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
        target = unit.header.start + shape.number(info, place + abbreviation.sibling_at, 4)
        if not place < target <= unit.header.end:
            raise DwarfError(f"sibling of {place} at {target}")
        return target
    at = step_over(info, place, abbreviation.steps_to_sibling, shape)
    form = abbreviation.forms[Attribute.SIBLING]
    value, _ = shape.value(info, at, form)
    target = int(value) + (unit.header.start if form in UNIT_REFERENCES else 0)
    if not place < target <= unit.header.end:
        raise DwarfError(f"sibling of {place} at {target}")
    return target


def _note(unit: Unit, found: Found, entry: tuple[int, Abbreviation], owner: int) -> tuple[int, int]:
    """The node of an entry with code (NONE when it has none that counts) and the place behind the entry."""
    place, abbreviation = entry
    if abbreviation.take is not None and abbreviation.size is not None:
        if place + abbreviation.size > unit.header.end:
            raise DwarfError(f"entry at {place} is cut")
        values, behind = abbreviation.take(unit.data.info, place), place + abbreviation.size
    else:
        values, behind = _read(unit, place, abbreviation)
    is_inlined = abbreviation.tag == Tag.INLINED_SUBROUTINE
    if is_inlined and owner == NONE:
        return NONE, behind
    ranges = _ranges(unit, abbreviation, values)
    depth = 0
    if is_inlined:
        depth = found.depths[owner] + 1
        if not ranges or depth > MAX_DEPTH:
            return owner, behind  # Nothing of it is left, but what was inlined into it may have code.
    else:
        ranges = [(start, end) for start, end in ranges if found.is_code(start, end)]
        if not ranges:
            return NONE, behind
        start = ranges[0][0]
        if found.first_at.setdefault(start, len(found.parents)) != len(found.parents):
            if start not in found.folded:
                return NONE, behind
            found.twins.append((start, len(found.parents)))
    node = len(found.parents)
    if node >= MAX_NODES:
        raise DwarfError(f"more than {MAX_NODES} functions and inlined calls")
    found.parents.append(owner if is_inlined else NONE)
    # A function may have a name of its own beside its origin's: each form of a constructor has.
    found.names.append(_name_place(unit, abbreviation, values, place) if is_inlined else unit.data.place + place)
    call_file, call_line = (values[5] or 0, values[6] or 0) if is_inlined else (0, 0)
    found.call_files.append(unit.files[call_file] if call_file < len(unit.files) else 0)
    found.call_lines.append(call_line if call_line < 1 << 32 else 0)
    found.depths.append(depth)
    for start, end in ranges:
        found.starts.append(start)
        found.ends.append(end)
        found.nodes.append(node)
    return node, behind


def _read(unit: Unit, place: int, abbreviation: Abbreviation) -> tuple[Values, int]:
    shape, info = unit.header.shape, unit.data.info
    place += abbreviation.code_bytes
    found: dict[int, int] = {}
    for attribute, form, constant in abbreviation.attributes:
        value, place = shape.value(info, place, form)
        if attribute in _WANTED:
            found.setdefault(attribute, constant if form == Form.IMPLICIT_CONST else int(value))
    return tuple([found.get(attribute) for attribute in WANTED]), place


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


def _name_place(unit: Unit, abbreviation: Abbreviation, values: Values, place: int) -> int:
    origin = values[3]
    if origin is None:
        return unit.data.place + place
    form = abbreviation.forms[Attribute.ABSTRACT_ORIGIN]
    if form in SUPPLEMENT_REFERENCES:
        return SUPPLEMENT | origin & (SUPPLEMENT - 1)
    return unit.data.place + origin + (unit.header.start if form in UNIT_REFERENCES else 0)
