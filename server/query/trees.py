# SPDX-License-Identifier: Apache-2.0
"""Keeps the call tree by name of each service: extended when its dictionary grew, made anew when names changed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.calltree import Indices
from server.profile.names import FrameColumns, FrameNames
from server.profile.nametable import NameTable, mark_flags
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.partnames import distinct_names
from server.profile.top import first_calls
from server.profile.totals import Mask
from server.store.protocol import BinaryInfo, ServiceDictionary

MOST_NODES = 20_000_000
"""Stack nodes of all trees kept, about 100 bytes each; the tree that was asked for longest ago leaves first."""

Binaries = Callable[[Sequence[int]], list[BinaryInfo]]


class Namer(Protocol):
    """What trees ask of server.symbols."""

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


class ServiceTree:
    """The tree of one service at one moment. Nothing in it changes but what is worked out when first asked for.

    A frame with calls inlined into it is as many nodes, one below the other; the frame is the innermost of them.
    """

    def __init__(self, tree: NameTree, nodes: Indices) -> None:
        self.tree = tree
        self.nodes = nodes
        """Node of the tree by node of the dictionary."""
        self._first_calls: Mask | None = None

    @property
    def first_calls(self) -> Mask:
        """See server.profile.top. Two threads may both work it out; they come to the same."""
        if self._first_calls is None:
            self._first_calls = first_calls(self.tree)
        return self._first_calls


class TreeCache:
    """Gives the tree of a service's dictionary. Thread safe: one thread builds a tree while others wait for that tree only."""

    def __init__(self, namer: Namer, binaries: Binaries) -> None:
        self._namer = namer
        self._binaries = binaries
        self._lock = threading.Lock()
        self._services: OrderedDict[tuple[str, bool], _GrowingTree] = OrderedDict()

    def tree(self, dictionary: ServiceDictionary, *, is_by_line: bool = False) -> ServiceTree:
        """Give a tree that covers at least `dictionary`: numbers are only ever appended. By line, a name is a function at one line."""
        key = (dictionary.service, is_by_line)
        with self._lock:
            growing = self._services.setdefault(key, _GrowingTree(is_by_line))
            self._services.move_to_end(key)
        tree = growing.tree(dictionary, self._namer, self._binaries)
        self._shrink()
        return tree

    def _shrink(self) -> None:
        with self._lock:
            size = sum(growing.size for growing in self._services.values())
            while size > MOST_NODES and len(self._services) > 1:
                _, oldest = self._services.popitem(last=False)
                size -= oldest.size


class _GrowingTree:
    """What is kept of one service between questions."""

    def __init__(self, is_by_line: bool) -> None:
        self.size = 0
        self._is_by_line = is_by_line
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._tree: ServiceTree | None = None
        self._reset()

    def tree(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> ServiceTree:
        with self._lock:
            if self._generation != namer.generation:
                self._reset()
            frames, nodes, *_ = dictionary.sizes
            if self._tree is None or frames > self._bounds.size - 1 or nodes > self._last.size:
                self._extend(dictionary, namer, binaries)
                tree, folded = self._builder.tree()
                self._tree = ServiceTree(tree, folded[self._last])
                self.size = len(self._builder)
            return self._tree

    def _reset(self) -> None:
        self._generation = None
        self._table = NameTable()
        self._builder = TreeBuilder(self._table)
        self._bounds: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        """Parts of frame i are bounds[i] up to bounds[i + 1]."""
        self._names: Indices = np.zeros(0, np.intp)
        """Number of the name by part."""
        self._is_inlined: Mask = np.zeros(0, np.bool_)
        # Nodes with one name each; `last` is the innermost one of each node of the dictionary.
        self._last: Indices = np.zeros(1, np.intp)
        self._parents: Indices = np.zeros(1, np.intp)
        self._parts: Indices = np.zeros(1, np.intp)
        self._tree = None

    def _extend(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> None:
        named = namer.names(_frames(dictionary), binaries, dictionary.strings, dictionary.service)
        if self._generation != named.generation:  # names changed since the last call: all of them again
            self._reset()
            self._generation = named.generation
        first = self._bounds.size - 1
        parts = named.all_parts()
        functions, place = distinct_names(named.functions, parts, int(self._bounds[first]), is_by_line=self._is_by_line)
        fresh = self._table.intern(functions)[place]
        is_mark = dictionary.frame_kinds[first:] == pb.PLACE_KIND_MARK
        marks = fresh[(parts.bounds[first:-1] - self._bounds[first])[is_mark]]
        self._table.flag(marks, mark_flags(dictionary.frame_offsets[first:][is_mark]))
        self._bounds, self._is_inlined = parts.bounds, parts.is_inlined
        self._names = np.concatenate([self._names, fresh])
        self._unfold(dictionary)
        self._builder.extend(self._parents, self._names[self._parts], self._is_inlined[self._parts])

    def _unfold(self, dictionary: ServiceDictionary) -> None:
        """Give the dictionary's new nodes as many nodes as their frames have parts."""
        first, count = self._last.size, self._parents.size
        frames = dictionary.node_frames[first:].astype(np.intp)
        sizes = self._bounds[frames + 1] - self._bounds[frames]
        last = count + np.cumsum(sizes) - 1
        self._last = np.concatenate([self._last, last])
        fresh = np.arange(count, count + int(sizes.sum()))
        starts = last - sizes + 1
        parents = fresh - 1
        parents[starts - count] = self._last[dictionary.node_parents[first:].astype(np.intp)]
        self._parents = np.concatenate([self._parents, parents])
        self._parts = np.concatenate([self._parts, np.repeat(self._bounds[frames] - starts, sizes) + fresh])


def _frames(dictionary: ServiceDictionary) -> FrameColumns:
    return FrameColumns(
        kinds=dictionary.frame_kinds,
        refs=dictionary.frame_refs,
        offsets=dictionary.frame_offsets,
        is_return=dictionary.frame_is_return,
    )
