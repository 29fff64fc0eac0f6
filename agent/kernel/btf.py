# SPDX-License-Identifier: Apache-2.0
"""Reads BTF, the kernel's own description of its types.

In: the bytes of /sys/kernel/btf/vmlinux. Out: types by id, decoded only when they are asked for: a kernel has some 100,000 of
them and a program needs a few hundred. Layout: Documentation/bpf/btf.rst and include/uapi/linux/btf.h.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from agent.errors import KernelError

MAGIC = 0xEB9F
HEADER_WORDS = 6
LIMIT_BYTES = 256 << 20
VOID = 0
"""Type id of void; it has no record."""


class Kind(IntEnum):
    """BTF_KIND_*."""

    INT = 1
    POINTER = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FORWARD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNCTION = 12
    FUNCTION_PROTOTYPE = 13
    VARIABLE = 14
    SECTION = 15
    FLOAT = 16
    DECLARATION_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


# Words of 4 bytes that follow a record's three, by kind: a fixed number, and a number for each of its `vlen` members.
_FIXED_WORDS = {Kind.INT: 1, Kind.ARRAY: 3, Kind.VARIABLE: 1, Kind.DECLARATION_TAG: 1}
_MEMBER_WORDS = {Kind.STRUCT: 3, Kind.UNION: 3, Kind.ENUM: 2, Kind.FUNCTION_PROTOTYPE: 2, Kind.SECTION: 3, Kind.ENUM64: 3}
_TRANSPARENT = frozenset({Kind.TYPEDEF, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.TYPE_TAG})
_COMPOSITE = frozenset({Kind.STRUCT, Kind.UNION})


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct or union. `bitfield_width` is 0 for one that is no bit field."""

    name: str
    type_id: int
    offset_bits: int
    bitfield_width: int


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """An array type."""

    element_type_id: int
    length: int


@dataclass(frozen=True, slots=True)
class IntShape:
    """An integer type. `encoding`: 1 signed, 2 char, 4 bool."""

    encoding: int
    size_bits: int


class Btf:
    """Types by id, from 1 up; 0 is void."""

    def __init__(self, data: bytes) -> None:
        if len(data) > LIMIT_BYTES:
            raise KernelError(f"BTF of {len(data)} bytes is over the limit of {LIMIT_BYTES}")
        types, self._strings = _sections(data)
        self._words = array("I", types)
        self._places = _places(self._words)

    def __len__(self) -> int:
        return len(self._places)

    def kind(self, type_id: int) -> Kind:
        return Kind((self._words[self._place(type_id) + 1] >> 24) & 0x1F)

    def name(self, type_id: int) -> str:
        """Empty for a type without a name."""
        return self._string(self._words[self._place(type_id)])

    def referred(self, type_id: int) -> int:
        """What a pointer, typedef or qualifier refers to."""
        return self._words[self._place(type_id) + 2]

    def size_bytes(self, type_id: int) -> int:
        """Size as recorded: of an int, enum, float, struct or union."""
        return self._words[self._place(type_id) + 2]

    def members(self, type_id: int) -> list[Member]:
        place = self._place(type_id)
        info = self._words[place + 1]
        has_bitfields = bool(info >> 31)
        found = []
        for at in range(place + 3, place + 3 + 3 * (info & 0xFFFF), 3):
            name, member_type, offset = self._words[at : at + 3]
            width = offset >> 24 if has_bitfields else 0
            found.append(Member(self._string(name), member_type, offset & 0xFFFFFF if has_bitfields else offset, width))
        return found

    def enumerators(self, type_id: int) -> list[tuple[str, int]]:
        """Names and values of an enum, which are negative only when it is signed."""
        place = self._place(type_id)
        info = self._words[place + 1]
        is_signed, is_wide = bool(info >> 31), (info >> 24) & 0x1F == Kind.ENUM64
        bits = 64 if is_wide else 32
        found = []
        step = 3 if is_wide else 2
        for at in range(place + 3, place + 3 + step * (info & 0xFFFF), step):
            value = self._words[at + 1] | (self._words[at + 2] << 32 if is_wide else 0)
            found.append((self._string(self._words[at]), value - (1 << bits) if is_signed and value >> (bits - 1) else value))
        return found

    def array(self, type_id: int) -> ArrayShape:
        place = self._place(type_id)
        return ArrayShape(self._words[place + 3], self._words[place + 5])

    def int_shape(self, type_id: int) -> IntShape:
        word = self._words[self._place(type_id) + 3]
        return IntShape((word >> 24) & 0xF, word & 0xFF)

    def is_forward_union(self, type_id: int) -> bool:
        return bool(self._words[self._place(type_id) + 1] >> 31)

    def resolve(self, type_id: int) -> int:
        """Follow typedefs and qualifiers to what they stand for."""
        for _ in range(64):
            if type_id == VOID or self.kind(type_id) not in _TRANSPARENT:
                return type_id
            type_id = self.referred(type_id)
        raise KernelError(f"BTF type {type_id} refers to itself")

    def composite(self, name: str) -> int | None:
        """The id of the struct or union of this name, None when there is none."""
        return self._composites.get(name)

    def section_offsets(self, section: str) -> dict[str, int]:
        """Where each variable of a section of the kernel lies in it: those of one CPU in .data..percpu."""
        found: dict[str, int] = {}
        for type_id in self.ids_of_kind(Kind.SECTION):
            place = self._place(type_id)
            if self.name(type_id) == section:
                count = self._words[place + 1] & 0xFFFF
                for at in range(place + 3, place + 3 + 3 * count, 3):
                    found[self.name(self._words[at])] = self._words[at + 1]
        return found

    def ids_of_kind(self, *kinds: Kind) -> list[int]:
        wanted = frozenset(kinds)
        return [i + 1 for i, place in enumerate(self._places) if (self._words[place + 1] >> 24) & 0x1F in wanted]

    @cached_property
    def _composites(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for type_id in self.ids_of_kind(*_COMPOSITE):
            found.setdefault(self.name(type_id), type_id)
        found.pop("", None)
        return found

    def _place(self, type_id: int) -> int:
        if not 1 <= type_id <= len(self._places):
            raise KernelError(f"BTF names type {type_id} of {len(self._places)}")
        return self._places[type_id - 1]

    def _string(self, offset: int) -> str:
        end = self._strings.find(b"\0", offset)
        if end < 0:
            raise KernelError(f"BTF names a string at {offset} of {len(self._strings)}")
        return self._strings[offset:end].decode("ascii", "replace")


def _sections(data: bytes) -> tuple[bytes, bytes]:
    """The type section and the string section."""
    if len(data) < HEADER_WORDS * 4:
        raise KernelError(f"BTF is cut off at {len(data)} bytes")
    magic, _version, _flags, header_bytes, type_offset, type_bytes, string_offset, string_bytes = struct.unpack_from("<HBBIIIII", data)
    if magic != MAGIC:
        raise KernelError(f"BTF begins with {magic:#06x}, not {MAGIC:#06x}: not little-endian BTF")
    type_start, string_start = header_bytes + type_offset, header_bytes + string_offset
    if max(type_start + type_bytes, string_start + string_bytes) > len(data) or type_bytes % 4:
        raise KernelError("BTF header promises more than the file holds")
    return data[type_start : type_start + type_bytes], data[string_start : string_start + string_bytes]


def _places(words: array[int]) -> array[int]:
    """Index of each record's first word. Records differ in length, so this is the one walk over all of them."""
    fixed = [_FIXED_WORDS.get(kind, 0) for kind in range(32)]  # type: ignore[call-overload]
    each = [_MEMBER_WORDS.get(kind, 0) for kind in range(32)]  # type: ignore[call-overload]
    places = array("I")
    at, end = 0, len(words)
    while at + 3 <= end:
        places.append(at)
        info = words[at + 1]
        kind = (info >> 24) & 0x1F
        if not 1 <= kind <= Kind.ENUM64:
            raise KernelError(f"BTF holds a type of unknown kind {kind}")
        at += 3 + fixed[kind] + each[kind] * (info & 0xFFFF)
    if at != end:
        raise KernelError("BTF is cut off inside a type")
    return places
