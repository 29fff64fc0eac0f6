# SPDX-License-Identifier: Apache-2.0
"""Numbers for what frames refer to, and the 64 bit code of a frame that is used between locate and the window's tables.

Code of a frame, so that one sort finds equal frames:

    63       62           41 40        1 0
    +--------+--------------+-----------+-----------+
    | binary | number       | offset    | is_return |
    +--------+--------------+-----------+-----------+

binary = 1: `number` counts binaries, `offset` is the place in it. binary = 0: `number` counts marks and names, `offset` is 0.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from agent.records.binary import Binary
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]

OFFSET_BITS = 40
"""A place is below 1 TiB; mappings beyond (sparse files) are not located."""
NUMBER_SHIFT = np.uint64(OFFSET_BITS + 1)
BINARY_SHIFT = np.uint64(63)
IN_BINARY = 1 << (63 - OFFSET_BITS - 1)
"""Added to a binary's number, so that `number << NUMBER_SHIFT` sets bit 63."""

_MARKS = 64
"""Numbers below stand for the marks themselves."""
_MOST_NAMES = 1 << 15
_MOST_BINARIES = 1 << 14
_NAME_BYTES = 4096

Name = tuple[pb.PlaceKind, bytes, int]
"""(JIT or BPF, name, tag)."""


class PlaceTable:
    """Binaries and names by number; grows over windows, until `is_full` says to begin anew."""

    def __init__(self) -> None:
        self._binaries: dict[Binary, int] = {}
        self._binary_list: list[Binary] = []
        self._names: dict[Name, int] = {}
        self._name_list: list[Name] = []

    @property
    def is_full(self) -> bool:
        """True when the table has outgrown what should be kept between windows (JIT code can make names without end)."""
        return len(self._name_list) > _MOST_NAMES or len(self._binary_list) > _MOST_BINARIES

    def number_of_binary(self, binary: Binary) -> int:
        """Number a binary. Two binaries with one build id but other content or path are two."""
        number = self._binaries.get(binary)
        if number is None:
            number = self._binaries[binary] = len(self._binary_list)
            self._binary_list.append(binary)
        return IN_BINARY + number

    def number_of_name(self, kind: pb.PlaceKind, name: bytes, tag: int = 0) -> int:
        """Number a JIT frame's or a BPF program's name; one that is too long is cut, with its hash so that it stays distinct."""
        key = (kind, name, tag)
        number = self._names.get(key)
        if number is None:
            number = self._names[key] = len(self._name_list)
            self._name_list.append((kind, bounded_name(name), tag))
        return _MARKS + number

    def binary(self, number: int) -> Binary:
        """Answer the binary with `number` (without IN_BINARY)."""
        return self._binary_list[number]

    def name(self, number: int) -> Name:
        """Answer what `number` stands for: a mark (with its number as tag), or a name."""
        if number < _MARKS:
            return (pb.PLACE_KIND_MARK, b"", number)
        return self._name_list[number - _MARKS]


def bounded_name(name: bytes) -> bytes:
    """Cut a name over 4 KiB, not inside a UTF-8 sequence, and end it with "…#" and 8 hex digits of its hash."""
    if len(name) <= _NAME_BYTES:
        return name
    tail = b"\xe2\x80\xa6#" + hashlib.blake2b(name, digest_size=4).hexdigest().encode()
    end = _NAME_BYTES - len(tail)
    while end > _NAME_BYTES - len(tail) - 3 and name[end] & 0xC0 == 0x80:
        end -= 1
    return name[:end] + tail
