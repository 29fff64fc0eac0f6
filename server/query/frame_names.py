# SPDX-License-Identifier: Apache-2.0
"""What the frames of a service are called: extended when its dictionary grew, made anew when names changed."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.calltree import Indices
from server.profile.names import FrameColumns, FrameNames
from server.profile.nametable import NameTable, mark_flags
from server.profile.partnames import distinct_names
from server.profile.totals import Mask
from server.store.protocol import BinaryInfo, ServiceDictionary

Binaries = Callable[[Sequence[int]], list[BinaryInfo]]


class Namer(Protocol):
    """What is asked of server.symbols."""

    @property
    def generation(self) -> int:
        """Another number means that names of frames may have changed."""
        ...

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        """Give the function of each frame of a service's dictionary."""
        ...

    def pending(self) -> int:
        """How many tables of names are being made."""
        ...

    def look_at(self, binaries: Sequence[tuple[BinaryInfo, float]]) -> Sequence[int]:
        """Somebody looks at these, each with its weight. Gives row ids of those whose names are being made."""
        ...


class GrowingNames:
    """Names of one service. Not thread safe."""

    def __init__(self, *, is_by_line: bool = False) -> None:
        """By line, a name is a function at one line."""
        self._is_by_line = is_by_line
        self._generation: int | None = None
        self._reset()

    def _reset(self) -> None:
        self._generation = None
        self.table = NameTable()
        self.bounds: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        """Parts of frame i are bounds[i] up to bounds[i + 1]: a function and the calls inlined into it."""
        self.names: Indices = np.zeros(0, np.intp)
        """Number of the name by part."""
        self.is_inlined: Mask = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        """Number of frames named."""
        return self.bounds.size - 1

    def covers(self, frame_count: int, namer: Namer) -> bool:
        """Say whether so many frames have the names they have now."""
        return self._generation == namer.generation and frame_count <= len(self)

    def extend(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> bool:
        """Name the frames of a dictionary that are new; True when names had changed and all were named anew, in a new table."""
        named = namer.names(_frames(dictionary), binaries, dictionary.strings, dictionary.service)
        is_anew = self._generation != named.generation
        if is_anew:  # Names changed since the last call: all of them again.
            self._reset()
            self._generation = named.generation
        first = len(self)
        parts = named.all_parts()
        functions, place = distinct_names(named.functions, parts, int(self.bounds[first]), is_by_line=self._is_by_line)
        fresh = self.table.intern(functions)[place]
        is_mark = dictionary.frame_kinds[first:] == pb.PLACE_KIND_MARK
        marks = fresh[(parts.bounds[first:-1] - self.bounds[first])[is_mark]]
        self.table.flag(marks, mark_flags(dictionary.frame_offsets[first:][is_mark]))
        self.bounds, self.is_inlined = parts.bounds, parts.is_inlined
        self.names = np.concatenate([self.names, fresh])
        return is_anew


def _frames(dictionary: ServiceDictionary) -> FrameColumns:
    return FrameColumns(
        kinds=dictionary.frame_kinds,
        refs=dictionary.frame_refs,
        offsets=dictionary.frame_offsets,
        is_return=dictionary.frame_is_return,
    )
