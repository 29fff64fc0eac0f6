# SPDX-License-Identifier: Apache-2.0
"""Profiles in pprof's format (profile.proto of google/pprof), gzipped or not, as stacks outermost first.

Read straight from the wire, field by field, because only six of its messages matter and the files come from anywhere: what does not hold
together is told with its place and never guessed. Values are those of the first sample type that counts, else of the last one, which is
what pprof itself shows.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from server.errors import BadRequest
from server.interop.folded import FoldedStack, Frame

MOST_BYTES = 1 << 30
"""Inflated."""
_GZIP = b"\x1f\x8b"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_KERNEL_MAPPINGS = ("[kernel", "vmlinux")

Field = tuple[int, int, int | bytes]
"""Number, wire type, value."""


def is_pprof(data: bytes) -> bool:
    """Tell whether a file is no text of folded stacks: it is gzipped, or begins as a sample type does."""
    return data[:2] == _GZIP or (data[:1] == b"\x0a" and len(data) > 2 and data[1] < 0x20 and data[2] == 0x08)


def read_pprof(data: bytes) -> list[FoldedStack]:
    """Give the stacks of a profile; those with value 0 are left out. Raises BadRequest for what is no profile."""
    profile = _Profile()
    for number, wire, value in _fields(memoryview(_inflated(data))):
        if wire == _BYTES and isinstance(value, bytes):
            profile.take(number, value)
    return list(profile.stacks())


@dataclass(slots=True)
class _Profile:
    """The tables of a profile, as they come: messages may refer to ones that follow."""

    strings: list[bytes] = field(default_factory=list)
    types: list[tuple[int, int]] = field(default_factory=list)
    samples: list[tuple[list[int], list[int]]] = field(default_factory=list)
    mappings: dict[int, int] = field(default_factory=dict)
    """Name of the file by id."""
    locations: dict[int, tuple[int, int, list[int]]] = field(default_factory=dict)
    """(mapping, address, functions from the innermost inlined one out) by id."""
    functions: dict[int, int] = field(default_factory=dict)
    """Name by id."""

    def take(self, number: int, body: bytes) -> None:
        """Take one message of the profile."""
        match number:
            case n if n == _STRING:
                self.strings.append(body)
            case n if n == _SAMPLE:
                self.samples.append((_repeated(body, 1), _repeated(body, 2)))
            case n if n == _SAMPLE_TYPE:
                self.types.append((_number(body, 1), _number(body, 2)))
            case n if n == _MAPPING:
                self.mappings[_number(body, 1)] = _number(body, 5)
            case n if n == _FUNCTION:
                self.functions[_number(body, 1)] = _number(body, 2)
            case n if n == _LOCATION:
                lines = [value for number, _, value in _fields(memoryview(body)) if number == 4 and isinstance(value, bytes)]
                self.locations[_number(body, 1)] = (_number(body, 2), _number(body, 3), [_number(line, 1) for line in lines])

    def stacks(self) -> Iterator[FoldedStack]:
        """Give the stacks, when all is read."""
        if not self.types or not self.strings or self.strings[0]:
            raise BadRequest("this is no pprof profile: it has no sample types, or no strings that begin with the empty one")
        at = next((i for i, (_, unit) in enumerate(self.types) if self._text(unit) == "count"), len(self.types) - 1)
        frames: dict[int, list[Frame]] = {}
        for ids, values in self.samples:
            if len(values) != len(self.types):
                raise BadRequest(f"a sample of this profile has {len(values)} values where {len(self.types)} belong")
            if values[at] > 0:
                path = [frame for one in reversed(ids) for frame in self._frames_of(one, frames)]
                yield FoldedStack("", tuple(path), values[at])

    def _frames_of(self, location: int, known: dict[int, list[Frame]]) -> list[Frame]:
        """Frames of a location, outermost first."""
        if location not in known:
            if location not in self.locations:
                raise BadRequest(f"a sample of this profile is at location {location}, which it does not have")
            mapping, address, functions = self.locations[location]
            file = self._text(self.mappings.get(mapping, 0))
            is_kernel = file.startswith(_KERNEL_MAPPINGS)
            names = [self._text(self.functions.get(one, 0)) for one in reversed(functions)]
            bare = f"[unknown] {file.rpartition('/')[2] or 'module'}+{address:#x}"
            known[location] = [Frame(name or bare, is_kernel) for name in names or [""]]
        return known[location]

    def _text(self, number: int) -> str:
        if number >= len(self.strings):
            raise BadRequest(f"this profile refers to string {number} of {len(self.strings)}")
        return self.strings[number].decode("utf-8", "surrogateescape")


def _inflated(data: bytes) -> bytes:
    if data[:2] != _GZIP:
        return data
    inflater = zlib.decompressobj(wbits=31)
    try:
        body = inflater.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise BadRequest(f"the profile cannot be inflated: {error}") from error
    if inflater.unconsumed_tail:
        raise BadRequest(f"the profile has more than {MOST_BYTES >> 20} MiB inflated")
    return body


def _fields(data: memoryview) -> Iterator[Field]:
    """Read a message field by field. Raises BadRequest where it is cut off, or has what profiles do not use."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if size > end - at:
                raise BadRequest("the profile is cut off, or no profile")
            yield number, wire, bytes(data[at : at + size])
            at += size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise BadRequest("this is no pprof profile, nor folded text")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise BadRequest("the profile is cut off, or no profile")


def _number(body: bytes, wanted: int) -> int:
    """The last value of a field; 0 when it is not there."""
    return next((value for number, _, value in reversed(list(_fields(memoryview(body)))) if number == wanted and isinstance(value, int)), 0)


def _repeated(body: bytes, wanted: int) -> list[int]:
    """All values of a field, packed or not; those above 2^63 are negative and count as 0."""
    found: list[int] = []
    for number, _, value in _fields(memoryview(body)):
        if number == wanted and isinstance(value, int):
            found.append(value)
        elif number == wanted and isinstance(value, bytes):
            view, at = memoryview(value), 0
            while at < len(view):
                one, at = _varint(view, at)
                found.append(one)
    return [0 if value >> 63 else value for value in found]
