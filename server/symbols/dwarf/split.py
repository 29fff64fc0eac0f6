# SPDX-License-Identifier: Apache-2.0
"""Units whose entries were split off into .dwo files, or into a .dwp file that holds many (DWARF 5, 7.3; GNU's DWARF 4 before it).

What is left in the program is a skeleton: the line program, addresses, and the id of the unit that belongs to it. The index of a .dwp
file tells where the parts of each unit lie:

    version u32 (2), or u16 (5) and padding | columns u32 | units u32 | slots u32
    slots  x id u64 | slots x row u32 (from 1; 0 for none)
    columns x section u32 | units x columns offset u32 | units x columns size u32
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.abbrev import Abbreviations
from server.symbols.dwarf.naming import BROKEN
from server.symbols.dwarf.shape import DwarfError
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.unit import UT_SPLIT_TYPE, Unit, UnitHeader, header_at, open_unit, unit_headers

MAX_SLOTS = 1 << 20
_INFO, _ABBREVIATIONS, _STRING_OFFSETS, _RANGE_LISTS = 1, 3, 6, 8
"""Numbers of sections; 8 is .debug_macro before version 5."""
_BROKEN = (*BROKEN, struct.error)
U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Place:
    data: DebugData
    header: UnitHeader
    tables: Abbreviations


class SplitUnits:
    """The units of some .dwo and .dwp files by their ids."""

    def __init__(self, program: DebugData, files: Sequence[DebugData]) -> None:
        """Addresses, and ranges before version 5, stay in the program; the files are told so. What is broken in a file is left out."""
        self._places: dict[int, _Place] = {}
        end = len(program.info)
        for data in files:
            data.place, end = end, end + len(data.info)
            data.addresses, data.ranges = program.addresses, program.ranges
            tables = Abbreviations()
            headers = _indexed(data) if data.unit_index else _listed(data, tables)
            for dwo_id, header in headers.items():
                self._places.setdefault(dwo_id, _Place(data, header, tables))

    def unit(self, skeleton: Unit) -> Unit | None:
        """The unit of a skeleton, with the skeleton's addresses; None when it is not here, or broken."""
        place = self._places.get(skeleton.dwo_id)
        if place is None:
            return None
        try:
            unit = open_unit(place.data, place.header, place.tables)
        except _BROKEN:
            return None
        unit.address_base, unit.low_pc = skeleton.address_base, skeleton.low_pc
        if unit.header.shape.version < 5:
            unit.range_base = skeleton.range_base
        return unit


def is_skeleton(unit: Unit) -> bool:
    """Whether the entries of a unit are in another file."""
    return bool(unit.dwo_name and unit.dwo_id)


def index_ids(index: bytes, byte_order: str) -> npt.NDArray[np.uint64]:
    """Ids of the units. Raises struct.error, DwarfError."""
    return _index_columns(index, byte_order)[0]


def _index_rows(index: bytes, byte_order: str) -> Iterator[tuple[int, dict[int, int]]]:
    """The id of each unit with its offsets by number of section. Raises struct.error, DwarfError."""
    ids, rows, sections, offsets = _index_columns(index, byte_order)
    for dwo_id, row in zip(ids.tolist(), rows.tolist(), strict=True):
        yield dwo_id, dict(zip(sections, offsets[row].tolist(), strict=True))


def _index_columns(index: bytes, byte_order: str) -> tuple[npt.NDArray[np.uint64], U32, list[int], U32]:
    """Ids of the units, the row of each from 0, numbers of sections, offsets by row and section; views where that is possible.

    A row that is named twice is refused, as are more ids than units: a small file would give very many of them.
    """
    order = "<" if byte_order == "little" else ">"
    version, columns, units, slots = struct.unpack_from(order + "4I", index)
    if struct.unpack_from(order + "H", index)[0] != 5 and version != 2:
        raise DwarfError(f"index of version {version}")
    if slots > MAX_SLOTS or units > slots or columns > 16 or len(index) < 16 + 12 * slots + 4 * columns * (1 + 2 * units):
        raise DwarfError(f"index of {units} units in {slots} slots is cut")
    ids = np.frombuffer(index, f"{order}u8", slots, 16)
    rows = np.frombuffer(index, f"{order}u4", slots, 16 + 8 * slots)
    sections = np.frombuffer(index, f"{order}u4", columns, 16 + 12 * slots)
    offsets = np.frombuffer(index, f"{order}u4", columns * units, 16 + 12 * slots + 4 * columns)
    is_used = rows > 0
    ids, rows = ids[is_used].astype(np.uint64), rows[is_used].astype(np.uint32)
    if rows.size > units or int(rows.max(initial=0)) > units or np.unique(rows).size != rows.size:
        raise DwarfError(f"index of {units} units names {rows.size}, or one twice")
    return ids, rows - np.uint32(1), sections.tolist(), offsets.astype(np.uint32).reshape(units, columns)


def _indexed(data: DebugData) -> dict[int, UnitHeader]:
    found: dict[int, UnitHeader] = {}
    try:
        rows = list(_index_rows(data.unit_index, data.byte_order))
    except _BROKEN:
        return found
    for dwo_id, offsets in rows:
        try:
            header = header_at(data, offsets[_INFO])
        except (*_BROKEN, KeyError):
            continue
        found[dwo_id] = replace(
            header,
            abbreviations=header.abbreviations + offsets.get(_ABBREVIATIONS, 0),
            string_base=offsets.get(_STRING_OFFSETS, 0),
            range_base=offsets.get(_RANGE_LISTS, 0) if header.shape.version >= 5 else 0,
        )
    return found


def _listed(data: DebugData, tables: Abbreviations) -> dict[int, UnitHeader]:
    found: dict[int, UnitHeader] = {}
    for header in unit_headers(data):
        if header.kind == UT_SPLIT_TYPE:
            continue
        try:
            dwo_id = header.dwo_id or open_unit(data, header, tables).dwo_id
        except _BROKEN:
            continue
        if dwo_id:
            found.setdefault(dwo_id, header)
    return found
