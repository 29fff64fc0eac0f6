# SPDX-License-Identifier: Apache-2.0
"""Keeps the inverted index of each service's stacks (server.profile.stack_index) and the names of its frames, for fleet search.

An index is made of segments, each as long as all that come after it or longer: there are log2 of the keys, and a key is indexed so many
times in all. The server's upkeep does that as stacks arrive, so that a question finds all but the last few done.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.nametable import NameTable
from server.profile.stack_index import Stacks, StackSegment, stack_segment
from server.query.frame_names import Binaries, GrowingNames, Namer
from server.store.protocol import ServiceDictionary

MOST_BYTES = 2 << 30
"""Of all segments: 10 M stacks of 40 M nodes take 0.4 GB. The service that was asked for longest ago leaves first."""
LEAST_FRESH = 4096
"""Keys for which upkeep makes a segment: a question indexes fewer in some ms."""
MOST_JOINED = 1 << 18
"""Keys of a segment that a question makes of small ones."""

Segments = tuple[StackSegment, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ServiceStacks:
    """Index and names of one service at one moment: of all in a dictionary, and perhaps of more."""

    segments: Segments
    table: NameTable
    bounds: npt.NDArray[np.int64]
    """Frame i has the names bounds[i] up to bounds[i + 1], the outermost first."""
    names: Indices
    """Numbers in the table."""


class StackIndexes:
    """Thread safe: one thread makes what is missing of a service while others wait for that service only."""

    def __init__(self, namer: Namer, binaries: Binaries) -> None:
        self._namer = namer
        self._binaries = binaries
        self._lock = threading.Lock()
        self._services: OrderedDict[str, _GrowingIndex] = OrderedDict()
        self._size_bytes = 0

    def stacks(self, dictionary: ServiceDictionary) -> ServiceStacks:
        """Give the index of a service, which covers at least `dictionary`: numbers are only ever appended."""
        with self._lock:
            growing = self._services.setdefault(dictionary.service, _GrowingIndex())
            self._services.move_to_end(dictionary.service)
        found = growing.stacks(dictionary, self._namer, self._binaries)
        self._weigh(dictionary.service, growing)
        return found

    def tend(self, dictionaries: Iterable[ServiceDictionary]) -> None:
        """Index what is new, and make few segments of many. For one thread; questions do not wait for it."""
        for dictionary in dictionaries:
            with self._lock:
                known = self._services.get(dictionary.service)
                has_room = self._size_bytes < MOST_BYTES
            if known or has_room:
                growing = known or _GrowingIndex()
                growing.tend(dictionary)
                with self._lock:
                    growing = self._services.setdefault(dictionary.service, growing)
                self._weigh(dictionary.service, growing)

    def _weigh(self, service: str, growing: "_GrowingIndex") -> None:
        """Count what the index of a service takes now, and drop others while all take too much."""
        with self._lock:
            if self._services.get(service) is growing:
                size = growing.size_bytes
                self._size_bytes += size - growing.counted_bytes
                growing.counted_bytes = size
            while self._size_bytes > MOST_BYTES and len(self._services) > 1:
                _, oldest = self._services.popitem(last=False)
                self._size_bytes -= oldest.counted_bytes


class _GrowingIndex:
    """What is kept of one service between questions."""

    def __init__(self) -> None:
        self.counted_bytes = 0
        """As far as StackIndexes knows."""
        self._lock = threading.Lock()
        self._segments: Segments = ()
        self._names = GrowingNames()

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    def stacks(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> ServiceStacks:
        frames, _, keys, _ = dictionary.sizes
        with self._lock:
            if _covered(self._segments) < keys:
                self._segments = _extended(self._segments, dictionary, MOST_JOINED)
            if not self._names.covers(frames, namer):
                self._names.extend(dictionary, namer, binaries)
            return ServiceStacks(self._segments, self._names.table, self._names.bounds, self._names.names)

    def tend(self, dictionary: ServiceDictionary) -> None:
        before, keys = self._segments, dictionary.sizes[2]
        covered = _covered(before)
        fresh = keys - covered
        is_due = fresh >= LEAST_FRESH or fresh > covered // 2 or _first_to_index(before, keys, keys) < covered
        if fresh < 0 or not is_due:
            return
        made = _extended(before, dictionary, keys)
        with self._lock:
            # What questions have indexed meanwhile stays when it begins where this ends.
            later = [segment for segment in self._segments if segment.first_key >= keys]
            self._segments = (*made, *(later if later and later[0].first_key == keys else ()))


def _covered(segments: Segments) -> int:
    return segments[-1].end_key if segments else 0


def _first_to_index(segments: Segments, keys: int, most: int) -> int:
    """Say from which key on a segment is made: from the first one on that is shorter than what comes after it, of `most` keys at most."""
    joined = (s.first_key for s in segments if s.keys.size < keys - s.end_key and keys - s.first_key <= most)
    return next(joined, _covered(segments))


def _extended(segments: Segments, dictionary: ServiceDictionary, most: int) -> Segments:
    """Index keys that are in no segment yet, with those of short segments before them if they are no more than `most` together."""
    first = _first_to_index(segments, dictionary.sizes[2], most)
    stacks = Stacks(dictionary.node_parents, dictionary.node_frames, dictionary.key_stacks)
    return (*(segment for segment in segments if segment.end_key <= first), stack_segment(stacks, first))
