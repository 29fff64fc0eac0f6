# SPDX-License-Identifier: Apache-2.0
"""Names of functions by the entry that gives them: the linkage name where there is one, else the plain name.

An entry may send on to its origin or specification, in other units too; entries that send in circles end after 16 steps.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from server.symbols.dwarf.constants import SUPPLEMENT_REFERENCES, UNIT_REFERENCES, Attribute
from server.symbols.dwarf.shape import DwarfError
from server.symbols.dwarf.unit import Unit, entry_values
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
        """Units sorted by place: of the file, and of the common file of dwz."""
        self._units = (units, supplement)
        self._starts = tuple([unit.header.start for unit in some] for some in self._units)

    def name(self, place: int) -> bytes:
        """The name that the entry at `place` leads to; b"" when it leads nowhere."""
        plain = b""
        for _ in range(MAX_STEPS):
            unit = self._unit(place)
            if unit is None:
                return plain
            try:
                _, values = entry_values(unit, place & (SUPPLEMENT - 1))
                for attribute in (Attribute.LINKAGE_NAME, Attribute.MIPS_LINKAGE_NAME):
                    if attribute in values and (linkage := unit.text(*values[attribute])):
                        return linkage
                if not plain and Attribute.NAME in values:
                    plain = unit.text(*values[Attribute.NAME])
            except BROKEN:
                return plain
            onward = values.get(Attribute.ABSTRACT_ORIGIN) or values.get(Attribute.SPECIFICATION)
            if onward is None:
                return plain
            form, value = onward
            place = _target(unit, form, int(value), place & SUPPLEMENT)
        return plain

    def _unit(self, place: int) -> Unit | None:
        which = 1 if place & SUPPLEMENT else 0
        offset = place & (SUPPLEMENT - 1)
        number = bisect_right(self._starts[which], offset) - 1
        if number < 0:
            return None
        unit = self._units[which][number]
        return unit if unit.header.root <= offset < unit.header.end else None


def _target(unit: Unit, form: int, value: int, side: int) -> int:
    if form in SUPPLEMENT_REFERENCES:
        return SUPPLEMENT | value & (SUPPLEMENT - 1)
    return side | (value + (unit.header.start if form in UNIT_REFERENCES else 0)) & (SUPPLEMENT - 1)
