# SPDX-License-Identifier: Apache-2.0
"""Names of functions by the entry that gives them: the linkage name where there is one, else the plain name.

An entry may send on to its origin or specification, in other units too; entries that send in circles end after 16 steps.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from server.symbols.dwarf.abbrev import LINKAGE, NAMING, ONWARD, Abbreviation
from server.symbols.dwarf.constants import SUPPLEMENT_REFERENCES, UNIT_REFERENCES, Attribute
from server.symbols.dwarf.shape import DwarfError, uleb
from server.symbols.dwarf.unit import Unit
from server.symbols.dwarf.walk import SUPPLEMENT

MAX_STEPS = 16
BROKEN = (DwarfError, IndexError, ValueError, OverflowError)
"""What bytes that make no sense may raise."""


_STRUCTORS = re.compile(rb"([CD])[125](?=E|I)")


def plain_name(name: bytes) -> bytes:
    """A linkage name with the complete, base and unified forms of constructors and destructors made one (C++ ABI, 5.1.4.3)."""
    return _STRUCTORS.sub(rb"\g<1>4", name) if name.startswith(b"_Z") else name


class Names:
    """Names by offset of entry; each entry is read once."""

    def __init__(self, units: Sequence[Unit], supplement: Sequence[Unit] = ()) -> None:
        """Units of the file and of its .dwo files, and those of the common file of dwz."""
        self._units = tuple(sorted(some, key=_start) for some in (units, supplement))
        self._starts = tuple([_start(unit) for unit in some] for some in self._units)

    def name(self, place: int) -> bytes:
        """The name that the entry at `place` leads to; b"" when it leads nowhere."""
        plain = b""
        for _ in range(MAX_STEPS):
            unit = self._unit(place)
            if unit is None:
                return plain
            try:
                linkage, own, onward = _entry(unit, (place & (SUPPLEMENT - 1)) - unit.data.place)
            except BROKEN:
                return plain
            plain = plain or own
            if linkage or onward is None:
                return linkage or plain
            place = _target(unit, *onward, place & SUPPLEMENT)
        return plain

    def _unit(self, place: int) -> Unit | None:
        which = 1 if place & SUPPLEMENT else 0
        offset = place & (SUPPLEMENT - 1)
        number = bisect_right(self._starts[which], offset) - 1
        if number < 0:
            return None
        unit = self._units[which][number]
        return unit if unit.header.root <= offset - unit.data.place < unit.header.end else None


def _start(unit: Unit) -> int:
    return unit.data.place + unit.header.start


def _entry(unit: Unit, place: int) -> tuple[bytes, bytes, tuple[int, int] | None]:
    """Linkage name, plain name, and form and value of the entry that it sends on to. What is behind a linkage name is not read."""
    info, value_of = unit.data.info, unit.header.shape.value
    code, behind = (info[place], place + 1) if info[place] < 0x80 else uleb(info, place)
    abbreviation = unit.table.by_code.get(code)
    if abbreviation is None:
        raise DwarfError(f"unknown abbreviation {code} at {place}")
    values = _varying(unit, abbreviation, behind) if abbreviation.names is None else abbreviation.names
    plain, onward = b"", None
    for attribute, form, offset in values:
        value, _ = value_of(info, place + offset, form)
        if attribute in LINKAGE:
            linkage = unit.text(form, value)
            if linkage:
                return linkage, plain, onward
        elif attribute == Attribute.NAME:
            plain = unit.text(form, value)
        elif attribute in ONWARD and onward is None:
            onward = (form, int(value))
    return b"", plain, onward


def _varying(unit: Unit, abbreviation: Abbreviation, place: int) -> list[tuple[int, int, int]]:
    """The same as Abbreviation.names, of one entry whose values begin at `place`."""
    found, start = [], place - abbreviation.code_bytes
    for attribute, form, _ in abbreviation.attributes:
        if attribute in NAMING:
            found.append((attribute, form, place - start))
        _, place = unit.header.shape.value(unit.data.info, place, form)
    return found


def _target(unit: Unit, form: int, value: int, side: int) -> int:
    if form in SUPPLEMENT_REFERENCES:
        return SUPPLEMENT | value & (SUPPLEMENT - 1)
    return side | (unit.data.place + value + (unit.header.start if form in UNIT_REFERENCES else 0)) & (SUPPLEMENT - 1)
