# SPDX-License-Identifier: Apache-2.0
"""Names by entry, wherever they lead."""

import struct

from server.symbols.dwarf.constants import Attribute, Form, Tag
from server.symbols.dwarf.naming import Names, plain_name
from server.symbols.dwarf.walk import SUPPLEMENT
from tests.server.symbols.dwarf.units import HEADER_BYTES, abbreviations, unit

TABLE = abbreviations(
    (Tag.COMPILE_UNIT, True, ()),
    (Tag.SUBPROGRAM, False, ((Attribute.ABSTRACT_ORIGIN, Form.REF4),)),
    (Tag.SUBPROGRAM, False, ((Attribute.NAME, Form.STRING), (Attribute.SPECIFICATION, Form.REF4))),
    (Tag.SUBPROGRAM, False, ((Attribute.NAME, Form.STRING), (Attribute.LINKAGE_NAME, Form.STRING))),
    (Tag.SUBPROGRAM, False, ((Attribute.NAME, Form.STRP),)),
)
FIRST = HEADER_BYTES + 1
"""Offset of the first entry under the root."""


def names(entries: bytes) -> Names:
    return Names([unit(b"\1" + entries + b"\0", TABLE, strings=b"zero\0seven\0")])


def test_the_linkage_name_comes_first_and_is_found_through_others() -> None:
    named = b"\4" + b"work\0" + b"_Z4worki\0"
    entries = named + b"\2" + struct.pack("<I", FIRST) + b"\3" + b"work\0" + struct.pack("<I", FIRST)
    found = names(entries)
    assert [found.name(FIRST + place) for place in (0, len(named), len(named) + 5)] == [b"_Z4worki"] * 3


def test_a_plain_name_counts_where_there_is_no_other() -> None:
    assert names(b"\5" + struct.pack("<I", 5)).name(FIRST) == b"seven"
    assert names(b"\5" + struct.pack("<I", 99)).name(FIRST) == b""


def test_entries_that_send_in_circles_have_no_name() -> None:
    """C11: A is of B, B is of A; and one that is of itself."""
    circle = b"\2" + struct.pack("<I", FIRST + 5) + b"\2" + struct.pack("<I", FIRST)
    assert [names(circle).name(FIRST + place) for place in (0, 5)] == [b"", b""]
    assert names(b"\2" + struct.pack("<I", FIRST)).name(FIRST) == b""


def test_a_name_on_the_way_stays_when_the_rest_is_broken() -> None:
    assert names(b"\3" + b"work\0" + struct.pack("<I", 0xFFFF)).name(FIRST) == b"work"


def test_what_is_nowhere_has_no_name() -> None:
    found = names(b"\5" + struct.pack("<I", 5))
    assert [found.name(place) for place in (0, 3, 1 << 40, SUPPLEMENT | FIRST)] == [b""] * 4


def test_constructors_are_one_name() -> None:
    assert plain_name(b"_ZN4shop4ItemC2Ei") == plain_name(b"_ZN4shop4ItemC1Ei") == plain_name(b"_ZN4shop4ItemC4Ei")
    assert plain_name(b"_ZN4shop4ItemD0Ev") != plain_name(b"_ZN4shop4ItemD1Ev")
    assert plain_name(b"C1E") == b"C1E"


def test_names_are_found_in_the_common_file_of_dwz() -> None:
    """C21: the altlink supplements; an entry there may send on within it."""
    common = unit(b"\1" + b"\4" + b"work\0" + b"_Z4worki\0" + b"\2" + struct.pack("<I", FIRST) + b"\0", TABLE)
    mine = unit(b"\1" + b"\5" + struct.pack("<I", 5) + b"\0", TABLE, strings=b"zero\0seven\0")
    found = Names([mine], [common])
    assert [found.name(SUPPLEMENT | FIRST), found.name(SUPPLEMENT | FIRST + 15), found.name(FIRST)] == [b"_Z4worki", b"_Z4worki", b"seven"]
    assert Names([mine]).name(SUPPLEMENT | FIRST) == b""
