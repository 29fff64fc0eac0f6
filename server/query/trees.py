# SPDX-License-Identifier: Apache-2.0
"""Keeps the call tree by name of each service: extended when its dictionary grew, made anew when names changed."""

import os
import threading
from collections import OrderedDict
from dataclasses import replace

import numpy as np

from server.profile.calltree import Indices
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.top import first_calls
from server.profile.totals import Mask
from server.query.frame_names import Binaries, GrowingNames, Namer
from server.store.protocol import ServiceDictionary

MOST_NODES = 20_000_000
"""The tree that was asked for longest ago leaves first; one is always kept."""
_NODE_BYTES = 250
"""Measured, with what is worked out of a tree when it is first asked for."""


def most_nodes(memory_bytes: int) -> int:
    """Stack nodes of all trees kept: those of a quarter of the machine's memory, at most 5 GB."""
    return min(MOST_NODES, memory_bytes // 4 // _NODE_BYTES)


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
        self._most_nodes = most_nodes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

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
            while size > self._most_nodes and len(self._services) > 1:
                _, oldest = self._services.popitem(last=False)
                size -= oldest.size


class _GrowingTree:
    """What is kept of one service between questions."""

    def __init__(self, is_by_line: bool) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._names = GrowingNames(is_by_line=is_by_line)
        self._tree: ServiceTree | None = None
        self._reset()

    def tree(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> ServiceTree:
        with self._lock:
            frames, nodes, *_ = dictionary.sizes
            if self._tree is None or nodes > self._last.size or not self._names.covers(frames, namer):
                self._extend(dictionary, namer, binaries)
                tree, folded = self._builder.tree()
                tree = replace(tree, table=tree.table.frozen())  # others read it while the next question extends the table
                self._tree = ServiceTree(tree, folded[self._last])
                self.size = len(self._builder)
            return self._tree

    def _reset(self) -> None:
        self._builder = TreeBuilder(self._names.table)
        # Nodes with one name each; `last` is the innermost one of each node of the dictionary.
        self._last: Indices = np.zeros(1, np.intp)
        self._parents: Indices = np.zeros(1, np.intp)
        self._parts: Indices = np.zeros(1, np.intp)
        self._tree = None

    def _extend(self, dictionary: ServiceDictionary, namer: Namer, binaries: Binaries) -> None:
        if self._names.extend(dictionary, namer, binaries):
            self._reset()
        self._unfold(dictionary)
        self._builder.extend(self._parents, self._names.names[self._parts], self._names.is_inlined[self._parts])

    def _unfold(self, dictionary: ServiceDictionary) -> None:
        """Give the dictionary's new nodes as many nodes as their frames have parts."""
        first, count, bounds = self._last.size, self._parents.size, self._names.bounds
        frames = dictionary.node_frames[first:].astype(np.intp)
        sizes = bounds[frames + 1] - bounds[frames]
        last = count + np.cumsum(sizes) - 1
        self._last = np.concatenate([self._last, last])
        fresh = np.arange(count, count + int(sizes.sum()))
        starts = last - sizes + 1
        parents = fresh - 1
        parents[starts - count] = self._last[dictionary.node_parents[first:].astype(np.intp)]
        self._parents = np.concatenate([self._parents, parents])
        self._parts = np.concatenate([self._parts, np.repeat(bounds[frames] - starts, sizes) + fresh])
