# SPDX-License-Identifier: Apache-2.0
"""Reads build ids from the bytes of ELF notes.

A note (gabi, "Note Section"): name size u32, descriptor size u32, type u32, then name and descriptor, each padded. Padding
is to 4 bytes, or to 8 in a segment aligned to 8 (.note.gnu.property). A note counts by (owner, type), never by type alone:
type 3 is also NT_PRPSINFO of core files.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from server.symbols.identity import MAX_BUILD_ID_BYTES, MIN_BUILD_ID_BYTES

MAX_NOTES = 256
_GNU_BUILD_ID = (b"GNU\0", 3)
_GO_BUILD_ID = (b"Go\0\0", 4)


@dataclass(frozen=True, slots=True)
class BuildIds:
    """The build ids of a file; b"" where there is none that counts."""

    gnu: bytes = b""
    go: bytes = b""

    def filled_from(self, other: "BuildIds") -> "BuildIds":
        """What is missing here taken from `other`."""
        return BuildIds(self.gnu or other.gnu, self.go or other.go)


def parse_build_ids(data: bytes, alignment: int, byte_order: str) -> BuildIds:
    """The first build id of each owner. `byte_order` is "<" or ">". Broken notes end the list, never raise.

    Go's ids of over 64 bytes are given by their last part, the id of the content: the agent does the same.
    """
    gnu = go = b""
    for owner, kind, descriptor in _notes(data, 8 if alignment == 8 else 4, byte_order):
        if (owner, kind) == _GNU_BUILD_ID and not gnu and _is_usable(descriptor):
            gnu = descriptor
        elif (owner.ljust(4, b"\0"), kind) == _GO_BUILD_ID and not go:
            short = descriptor if len(descriptor) <= MAX_BUILD_ID_BYTES else descriptor.rpartition(b"/")[2]
            go = short if _is_usable(short) else b""
    return BuildIds(gnu, go)


def _is_usable(build_id: bytes) -> bool:
    return MIN_BUILD_ID_BYTES <= len(build_id) <= MAX_BUILD_ID_BYTES and any(build_id)


def _notes(data: bytes, alignment: int, byte_order: str) -> Iterator[tuple[bytes, int, bytes]]:
    head = struct.Struct(byte_order + "III")
    place = 0
    for _ in range(MAX_NOTES):
        if place + head.size > len(data):
            return
        name_size, descriptor_size, kind = head.unpack_from(data, place)
        name_start = place + head.size
        descriptor_start = _align(name_start + name_size, alignment)
        if descriptor_start + descriptor_size > len(data):
            return
        yield data[name_start : name_start + name_size], kind, data[descriptor_start : descriptor_start + descriptor_size]
        place = _align(descriptor_start + descriptor_size, alignment)


def _align(value: int, alignment: int) -> int:
    return value + -value % alignment
