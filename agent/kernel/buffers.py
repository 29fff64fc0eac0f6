# SPDX-License-Identifier: Apache-2.0
"""Two buffers per map: BPF writes one while the collector drains the other, so that a drain loses nothing.

    outer map (made by the loader)     inner maps (made here, as large as needed)
      slot 0  ------------------------->  map   <- written while `active` is 0
      slot 1  ------------------------->  map   <- written while `active` is 1

The side of BPF, and why the wait holds, is in bpf/shared/window.h.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import bpf

BUFFERS = 2
_KEY_ZERO = (0).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class MapShape:
    """What the inner maps of one outer map look like; key and value as in its shape in bpf/."""

    name: str
    key_type: np.dtype[Any]
    value_type: np.dtype[Any]
    most_entries: int
    """They grow no further."""
    chunk_entries: int
    """Entries read at a time: the drain holds no more than this many beside what it returns."""


class BufferedMap:
    """The inner maps of one outer map."""

    def __init__(self, outer: int, shape: MapShape, entries: int) -> None:
        self._outer = outer
        self._shape = shape
        self._wanted_entries = min(entries, shape.most_entries)
        self._entries = [0] * BUFFERS
        self._descriptors: list[int | None] = [None] * BUFFERS
        for buffer in range(BUFFERS):
            self._replace(buffer)

    def drain(self, buffer: int) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Take out the keys and values of a buffer that nobody writes, in pieces."""
        return bpf.drain(self._descriptor(buffer), self._shape.key_type, self._shape.value_type, self._shape.chunk_entries)

    def drain_all(self, buffer: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The same in one piece."""
        pieces = list(self.drain(buffer))
        keys = np.concatenate([np.empty(0, self._shape.key_type), *(piece[0] for piece in pieces)])
        return keys, np.concatenate([np.empty(0, self._shape.value_type), *(piece[1] for piece in pieces)])

    def settle(self, buffer: int, used: int, refused: int) -> bool:
        """Make room after a drain of `used` entries with `refused` inserts; True when the map of this buffer has grown.

        Maps more than three quarters full double, and each buffer takes the new size when its turn to be idle comes.
        """
        if refused or used * 4 > self._wanted_entries * 3:
            needed = max(2 * self._wanted_entries, 2 * (used + refused))
            self._wanted_entries = min(1 << (needed - 1).bit_length(), self._shape.most_entries)
        if self._entries[buffer] >= self._wanted_entries:
            return False
        self._replace(buffer)
        return True

    def put_in_place(self, buffer: int) -> None:
        """Set the slot of a buffer; returns when every handler that ran before has ended."""
        bpf.update(self._outer, buffer.to_bytes(4, "little"), self._descriptor(buffer).to_bytes(4, "little"))

    def entries(self, buffer: int) -> int:
        return self._entries[buffer]

    def size_bytes(self) -> int:
        """Kernel memory of both buffers."""
        return sum(bpf.map_bytes(self._descriptor(buffer)) for buffer in range(BUFFERS))

    def close(self) -> None:
        bpf.close(*(descriptor for descriptor in self._descriptors if descriptor is not None))
        self._descriptors = [None] * BUFFERS

    def _descriptor(self, buffer: int) -> int:
        descriptor = self._descriptors[buffer]
        assert descriptor is not None, "used after close"
        return descriptor

    def _replace(self, buffer: int) -> None:
        """An empty map for the buffer. When the kernel has no memory for a larger one, the old one stays."""
        shape, old = self._shape, self._descriptors[buffer]
        try:
            self._descriptors[buffer] = bpf.create_hash(
                shape.name, shape.key_type.itemsize, shape.value_type.itemsize, self._wanted_entries
            )
        except KernelError:
            if old is None:
                raise
            self._wanted_entries = self._entries[buffer]  # Losses go on and are counted by reason, as before.
            return
        self._entries[buffer] = self._wanted_entries
        self.put_in_place(buffer)
        if old is not None:
            bpf.close(old)


def flip(active: int, buffer: int, any_map: BufferedMap) -> None:
    """Have handlers write `buffer` from now on; returns when none writes the other any more."""
    bpf.update(active, _KEY_ZERO, buffer.to_bytes(8, "little"))
    any_map.put_in_place(1 - buffer)
