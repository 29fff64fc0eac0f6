# SPDX-License-Identifier: Apache-2.0
"""Address ranges of an entry: .debug_rnglists of DWARF 5, .debug_ranges before."""

from server.symbols.dwarf.constants import Form
from server.symbols.dwarf.shape import DwarfError, uleb
from server.symbols.dwarf.unit import Unit

MAX_RANGES = 1 << 16

RLE_END, RLE_BASE_X, RLE_STARTX_ENDX, RLE_STARTX_LENGTH, RLE_OFFSET_PAIR, RLE_BASE, RLE_START_END, RLE_START_LENGTH = range(8)


def ranges_of(unit: Unit, form: int, value: int) -> list[tuple[int, int]]:
    """Half open ranges, empty ones left out. Raises DwarfError."""
    if unit.header.shape.version >= 5:
        return _range_list(unit, value, is_index=form == Form.RNGLISTX)
    return _old_ranges(unit, value + (unit.range_base if unit.data.is_split else 0))


def _range_list(unit: Unit, value: int, *, is_index: bool) -> list[tuple[int, int]]:
    shape, data = unit.header.shape, unit.data.range_lists
    place = value
    if is_index:
        place = unit.range_base + shape.number(data, unit.range_base + value * shape.offset_bytes, shape.offset_bytes)
    base = unit.low_pc
    found: list[tuple[int, int]] = []
    for _ in range(MAX_RANGES):
        if place >= len(data):
            break
        kind, place = data[place], place + 1
        if kind == RLE_OFFSET_PAIR:
            first, second = data[place], data[place + 1]
            if first < 0x80 and second < 0x80:
                place += 2
            else:
                first, place = uleb(data, place)
                second, place = uleb(data, place)
            if first < second:
                found.append((base + first, base + second))
            continue
        if kind == RLE_END:
            return found
        if kind == RLE_BASE:
            base, place = shape.number(data, place, shape.address_bytes), place + shape.address_bytes
            continue
        if kind == RLE_BASE_X:
            index, place = uleb(data, place)
            base = unit.address(index)
            continue
        first, second, place = _absolute(unit, kind, place)
        if first < second:
            found.append((first, second))
    raise DwarfError(f"range list at {value} without end")


def _absolute(unit: Unit, kind: int, place: int) -> tuple[int, int, int]:
    shape, data = unit.header.shape, unit.data.range_lists
    width = shape.address_bytes
    if kind in (RLE_STARTX_ENDX, RLE_STARTX_LENGTH):
        index, place = uleb(data, place)
        second, place = uleb(data, place)
        first = unit.address(index)
        return first, unit.address(second) if kind == RLE_STARTX_ENDX else first + second, place
    first, place = shape.number(data, place, width), place + width
    if kind == RLE_START_END:
        return first, shape.number(data, place, width), place + width
    if kind == RLE_START_LENGTH:
        length, place = uleb(data, place)
        return first, first + length, place
    raise DwarfError(f"range of unknown kind {kind}")


def _old_ranges(unit: Unit, place: int) -> list[tuple[int, int]]:
    shape, data = unit.header.shape, unit.data.ranges
    width = shape.address_bytes
    base, highest = unit.low_pc, (1 << 8 * width) - 1
    found: list[tuple[int, int]] = []
    for _ in range(MAX_RANGES):
        first, second = shape.number(data, place, width), shape.number(data, place + width, width)
        place += 2 * width
        if first == second == 0:
            return found
        if first == highest:
            base = second
        elif first < second:
            found.append((base + first, base + second))
    raise DwarfError("ranges without end")
