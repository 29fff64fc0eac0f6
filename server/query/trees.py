# SPDX-License-Identifier: Apache-2.0
"""Keeps the call tree by name of each service: extended when its dictionary grew, made anew when names changed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.profile.calltree import Indices
from server.profile.names import FrameColumns, FrameNames, FunctionTable
from server.profile.nametable import NameTable, mark_flags
from server.profile.nametree import NameTree, TreeBuilder
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


class ServiceTree:
    """The tree of one service at one moment. Nothing in it changes but what is worked out when first asked for."""

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
        self._services: OrderedDict[str, _GrowingTree] = OrderedDict()

    def tree(self, dictionary: ServiceDictionary) -> ServiceTree:
        """Give a tree that covers at least `dictionary`: numbers are only ever appended."""
        with self._lock:
            growing = self._services.setdefault(dictionary.service, _GrowingTree())
            self._services.move_to_end(dictionary.service)
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

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._table = NameTable()
        self._builder = TreeBuilder(self._table)
        self._numbers: Indices = np.zeros(0, np.intp)  # name by frame
        self._tree: ServiceTree | None = None

    def tree(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> ServiceTree:
        with self._lock:
            if self._generation != namer.generation:
                self._reset()
            frames, nodes, *_ = dictionary.sizes
            if self._tree is None or frames > self._numbers.size or nodes > len(self._builder):
                self._extend(dictionary, namer, binaries)
                self._tree = ServiceTree(*self._builder.tree())
                self.size = len(self._builder)
            return self._tree

    def _reset(self) -> None:
        self._generation = None
        self._table = NameTable()
        self._builder = TreeBuilder(self._table)
        self._numbers = np.zeros(0, np.intp)
        self._tree = None

    def _extend(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> None:
        named = namer.names(_frames(dictionary), binaries, dictionary.strings, dictionary.service)
        if self._generation != named.generation:  # names changed since the last call: all of them again
            self._reset()
            self._generation = named.generation
        first = self._numbers.size
        used, place = np.unique(named.function[first:], return_inverse=True)
        fresh = self._table.intern(_rows_of(named.functions, used.tolist()))[place]
        is_mark = dictionary.frame_kinds[first:] == pb.PLACE_KIND_MARK
        self._table.flag(fresh[is_mark], mark_flags(dictionary.frame_offsets[first:][is_mark]))
        self._numbers = np.concatenate([self._numbers, fresh])
        self._builder.extend(dictionary.node_parents.astype(np.intp), self._numbers[dictionary.node_frames])


def _rows_of(functions: FunctionTable, rows: list[int]) -> FunctionTable:
    return FunctionTable(
        names=[functions.names[row] for row in rows],
        raw_names=[functions.raw_names[row] for row in rows],
        binaries=[functions.binaries[row] for row in rows],
        codes=functions.codes[rows],
        is_named=functions.is_named[rows],
        files=[functions.files[row] for row in rows],
        lines=functions.lines[rows],
    )


def _frames(dictionary: ServiceDictionary) -> FrameColumns:
    return FrameColumns(
        kinds=dictionary.frame_kinds,
        refs=dictionary.frame_refs,
        offsets=dictionary.frame_offsets,
        is_return=dictionary.frame_is_return,
    )
