# SPDX-License-Identifier: Apache-2.0
"""Units of .debug_info: their headers, and the values of the root entry that everything below is read with."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from server.symbols.dwarf.abbrev import Abbreviations, AbbreviationTable
from server.symbols.dwarf.constants import ADDRESS_INDEXES, STRING_INDEXES, Attribute, Form
from server.symbols.dwarf.shape import DwarfError, Shape, uleb
from server.symbols.dwarf.source import DebugData

UT_TYPE, UT_SKELETON, UT_SPLIT_COMPILE, UT_SPLIT_TYPE = 2, 4, 5, 6
MAX_UNITS = 1 << 20


@dataclass(frozen=True, slots=True)
class UnitHeader:
    """Where a unit lies. Offsets are from the start of .debug_info."""

    start: int
    root: int
    end: int
    shape: Shape
    abbreviations: int
    kind: int
    dwo_id: int
    string_base: int = 0
    """Where the string offsets and range lists of this unit begin among those of others in a .dwp file."""
    range_base: int = 0


def header_at(data: DebugData, start: int) -> UnitHeader:
    """The header at one place. Raises DwarfError."""
    if not 0 <= start <= len(data.info) - 11:
        raise DwarfError(f"unit at {start} of {len(data.info)}")
    return _header(data.info, start, data.byte_order)


def unit_headers(data: DebugData) -> Iterator[UnitHeader]:
    """The headers one after another, up to the first that makes no sense: what is behind it cannot be found."""
    info, place = data.info, 0
    for _ in range(MAX_UNITS):
        if place + 11 > len(info):
            return
        try:
            header = _header(info, place, data.byte_order)
        except DwarfError:
            return
        yield header
        place = header.end


def _header(info: bytes, start: int, byte_order: str) -> UnitHeader:
    wide = Shape(byte_order, 4, 4, 8)
    length, place, offset_bytes = wide.number(info, start, 4), start + 4, 4
    if length == 0xFFFF_FFFF:
        length, place, offset_bytes = wide.number(info, place, 8), place + 8, 8
    end = place + length
    version = wide.number(info, place, 2)
    if not 2 <= version <= 5 or end > len(info) or length < 7:
        raise DwarfError(f"unit of version {version} and {length} bytes at {start}")
    place += 2
    kind = dwo_id = 0
    if version == 5:
        kind, address_bytes = info[place], info[place + 1]
        abbreviations = wide.number(info, place + 2, offset_bytes)
        place += 2 + offset_bytes
        if kind in (UT_SKELETON, UT_SPLIT_COMPILE):
            dwo_id = wide.number(info, place, 8)
            place += 8
        elif kind in (UT_TYPE, UT_SPLIT_TYPE):
            place += 8 + offset_bytes
    else:
        abbreviations, address_bytes = wide.number(info, place, offset_bytes), info[place + offset_bytes]
        place += offset_bytes + 1
    if address_bytes not in (4, 8):
        raise DwarfError(f"addresses of {address_bytes} bytes")
    return UnitHeader(start, place, end, Shape(byte_order, version, offset_bytes, address_bytes), abbreviations, kind, dwo_id)


@dataclass(slots=True)
class Unit:
    """A unit ready to be walked."""

    header: UnitHeader
    data: DebugData
    table: AbbreviationTable
    low_pc: int = 0
    comp_dir: bytes = b""
    name: bytes = b""
    stmt_list: int | None = None
    string_base: int = 0
    address_base: int = 0
    range_base: int = 0
    dwo_name: bytes = b""
    dwo_id: int = 0
    files: list[int] = field(default_factory=list)
    """Number of the file in the whole program, by its number in this unit."""

    def address(self, index: int) -> int:
        """An entry of .debug_addr."""
        width = self.header.shape.address_bytes
        return self.header.shape.number(self.data.addresses, self.address_base + index * width, width)

    def text(self, form: int, value: int | bytes) -> bytes:
        """The text that a value stands for; b"" when it is not here."""
        if isinstance(value, bytes):
            return value
        if form in STRING_INDEXES:
            width = self.header.shape.offset_bytes
            value = self.header.shape.number(self.data.string_offsets, self.string_base + value * width, width)
            return text_at(self.data.strings, value)
        if form == Form.STRP:
            return text_at(self.data.strings, value)
        if form == Form.LINE_STRP:
            return text_at(self.data.line_strings, value)
        if form in (Form.STRP_SUP, Form.GNU_STRP_ALT):
            return text_at(self.data.supplement.strings, value) if self.data.supplement is not None else b""
        return b""


def open_unit(data: DebugData, header: UnitHeader, abbreviations: Abbreviations) -> Unit:
    """Read the root entry; `abbreviations` are those of `data`. Raises DwarfError."""
    unit = Unit(header, data, abbreviations.table(data.abbreviations, header.abbreviations, header.shape))
    unit.string_base, unit.address_base, unit.range_base = data.default_bases(header.shape)
    unit.string_base, unit.range_base = unit.string_base + header.string_base, unit.range_base + header.range_base
    values = root_values(unit)
    for attribute, name in ((Attribute.STR_OFFSETS_BASE, "string_base"), (Attribute.ADDR_BASE, "address_base")):
        if attribute in values:
            setattr(unit, name, values[attribute][1])
    unit.address_base = int(values.get(Attribute.GNU_ADDR_BASE, (0, unit.address_base))[1])
    base = values.get(Attribute.RNGLISTS_BASE) or values.get(Attribute.GNU_RANGES_BASE)
    unit.range_base = int(base[1]) if base else unit.range_base
    if Attribute.LOW_PC in values:
        form, value = values[Attribute.LOW_PC]
        unit.low_pc = unit.address(int(value)) if form in ADDRESS_INDEXES else int(value)
    if Attribute.STMT_LIST in values:
        unit.stmt_list = int(values[Attribute.STMT_LIST][1])
    unit.comp_dir = _root_text(unit, values, Attribute.COMP_DIR)
    unit.name = _root_text(unit, values, Attribute.NAME)
    unit.dwo_name = _root_text(unit, values, Attribute.DWO_NAME) or _root_text(unit, values, Attribute.GNU_DWO_NAME)
    unit.dwo_id = header.dwo_id or int(values.get(Attribute.GNU_DWO_ID, (0, 0))[1])
    return unit


def root_values(unit: Unit) -> dict[int, tuple[int, int | bytes]]:
    """Form and value by attribute of the root entry."""
    info = unit.data.info
    code, place = uleb(info, unit.header.root)
    abbreviation = unit.table.by_code.get(code)
    if abbreviation is None:
        raise DwarfError(f"unknown abbreviation {code} at {place}")
    found: dict[int, tuple[int, int | bytes]] = {}
    for attribute, form, constant in abbreviation.attributes:
        value, place = unit.header.shape.value(info, place, form)
        found.setdefault(attribute, (form, constant if form == Form.IMPLICIT_CONST else value))
    return found


def _root_text(unit: Unit, values: dict[int, tuple[int, int | bytes]], attribute: int) -> bytes:
    return unit.text(*values[attribute]) if attribute in values else b""


def text_at(strings: bytes, place: int) -> bytes:
    """The text that begins there; b"" outside, and where it has no end."""
    end = strings.find(b"\0", place)
    return strings[place:end] if 0 <= place < len(strings) and end >= 0 else b""
