# SPDX-License-Identifier: Apache-2.0
"""How wide things are in one unit, and reading them: numbers, LEB128, values of any form."""

from dataclasses import dataclass

from server.symbols.dwarf.constants import LEB_FORMS, OFFSET_SIZED, OWN_SIZES, Form

MAX_INDIRECT = 4


class DwarfError(Exception):
    """DWARF that makes no sense; costs the unit it is found in."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Byte order, version and widths of a unit."""

    byte_order: str
    """"little" or "big"."""
    version: int
    offset_bytes: int
    address_bytes: int

    def size_of(self, form: int) -> int | None:
        """Bytes of a form; None when they depend on the value."""
        own = OWN_SIZES.get(form)
        if own is not None:
            return own
        if form in OFFSET_SIZED:
            return self.offset_bytes
        if form == Form.ADDR:
            return self.address_bytes
        if form == Form.REF_ADDR:
            return self.address_bytes if self.version <= 2 else self.offset_bytes
        return None

    def number(self, data: bytes, place: int, size: int) -> int:
        """An unsigned number. Raises DwarfError behind the end."""
        if place < 0 or place + size > len(data):
            raise DwarfError(f"reads {size} bytes at {place} of {len(data)}")
        return int.from_bytes(data[place : place + size], "little" if self.byte_order == "little" else "big")

    def value(self, data: bytes, place: int, form: int) -> tuple[int | bytes, int]:
        """One value as it stands there, and the place behind it. Blocks are skipped and give 0; constants of abbreviations too."""
        for _ in range(MAX_INDIRECT):
            if form != Form.INDIRECT:
                break
            form, place = uleb(data, place)
        size = self.size_of(form)
        if size is not None:
            return self.number(data, place, size), place + size
        if form == Form.SDATA:
            return sleb(data, place)
        if form in LEB_FORMS:
            return uleb(data, place)
        if form == Form.STRING:
            end = data.find(b"\0", place)
            if end < 0:
                raise DwarfError(f"text without end at {place}")
            return data[place:end], end + 1
        return 0, self._behind_block(data, place, form)

    def _behind_block(self, data: bytes, place: int, form: int) -> int:
        width = {Form.BLOCK1: 1, Form.BLOCK2: 2, Form.BLOCK4: 4}.get(Form(form)) if form in _BLOCKS else None
        if form not in _BLOCKS:
            raise DwarfError(f"unknown form {form:#x}")
        if width is None:
            length, place = uleb(data, place)
        else:
            length, place = self.number(data, place, width), place + width
        return place + length


_BLOCKS = frozenset((Form.BLOCK, Form.BLOCK1, Form.BLOCK2, Form.BLOCK4, Form.EXPRLOC))


def uleb(data: bytes, place: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and the place behind it. Raises DwarfError when it has no end in 10 bytes, IndexError behind the end."""
    first = data[place]
    if first < 0x80:
        return first, place + 1
    second = data[place + 1]
    if second < 0x80:
        return first & 0x7F | second << 7, place + 2
    value = shift = 0
    for byte in data[place : place + 10]:
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise DwarfError(f"number without end at {place}")


def sleb(data: bytes, place: int) -> tuple[int, int]:
    """A signed LEB128 number, and the place behind it."""
    start = place
    value, place = uleb(data, place)
    bits = 7 * (place - start)
    return (value - (1 << bits) if data[place - 1] & 0x40 else value), place
