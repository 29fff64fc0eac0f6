# SPDX-License-Identifier: Apache-2.0
"""The call tree by name: stacks whose frames have the same names are one path, whatever their addresses.

TreeBuilder folds nodes that come in any number of helpings (a dictionary that grows) into name nodes, level by level in whole
arrays; `NameTree` is what it gives out: columns in preorder, siblings in the order of their names, so that a subtree is a
slice and every total a difference of two prefix sums.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import ROOT, Indices, depths_of, levels
from server.profile.nametable import NameTable

Hashes = npt.NDArray[np.uint64]

ID_BITS = 53
"""JavaScript's numbers are exact to 53 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class NameTree:
    """Columns in preorder; node 0 is the root. Never changed after it was made."""

    table: NameTable
    """What the numbers in `name` stand for; grows by appending only."""
    parent: Indices
    """0 for the root as well."""
    name: Indices
    depth: Indices
    """0 for the root."""
    end: Indices
    """The subtree of node n is n..end[n]."""
    identity: npt.NDArray[np.int64]
    """Hash of the path of names, 53 bits: the same path has the same one in every view. 0 is the root."""
    flags: npt.NDArray[np.uint8]
    """PathFlag of all names from the root to here."""
    inlined: npt.NDArray[np.bool_]
    """The compiler has put this call's code into its caller's, wherever it was seen."""

    def __len__(self) -> int:
        return int(self.parent.size)

    def find(self, identity: int) -> int | None:
        """Give the node with this id, or None."""
        found = np.flatnonzero(self.identity == identity)
        return int(found[0]) if found.size else None


class TreeBuilder:
    """Folds a growing tree of (parent, name) nodes into name nodes. Not thread safe."""

    def __init__(self, table: NameTable) -> None:
        self._table = table
        # By input node:
        self._depths: Indices = np.zeros(1, np.intp)
        self._folded: Indices = np.zeros(1, np.intp)
        # By name node, in order of birth:
        self._parent: Indices = np.zeros(1, np.intp)
        self._name: Indices = np.zeros(1, np.intp)
        self._is_called: npt.NDArray[np.bool_] = np.ones(1, np.bool_)
        # Index of name nodes: (parent << 32 | name), ascending, and the node of each.
        self._keys: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._key_nodes: Indices = np.zeros(0, np.intp)

    def __len__(self) -> int:
        """Number of input nodes taken so far, the root included."""
        return int(self._depths.size)

    def extend(self, parents: Indices, names: Indices, inlined: npt.NDArray[np.bool_] | None = None) -> None:
        """Take the whole input tree again, grown at its end: nodes already taken are not looked at. Without `inlined` no node is."""
        first = len(self)
        self._depths = depths_of(parents, self._depths)
        self._folded = np.concatenate([self._folded, np.zeros(parents.size - first, np.intp)])
        new_keys: list[npt.NDArray[np.int64]] = []
        born = self._parent.size
        for level in levels(self._depths, first):
            keys = (self._folded[parents[level]] << 32) | names[level]
            distinct, inverse = np.unique(keys, return_inverse=True)
            nodes, is_new = self._look_up(distinct)
            fresh = distinct[is_new]
            nodes[is_new] = np.arange(born, born + fresh.size)
            born += fresh.size
            new_keys.append(fresh)
            self._folded[level] = nodes[inverse]
        self._take(np.concatenate(new_keys) if new_keys else np.zeros(0, np.int64))
        fresh_nodes = self._folded[first:]
        self._is_called[fresh_nodes if inlined is None else fresh_nodes[~inlined[first:]]] = True

    def tree(self) -> tuple[NameTree, Indices]:
        """Give the tree in preorder, and the node of it for each input node."""
        parent, name = self._parent, self._name
        depth = depths_of(parent, np.zeros(1, np.intp))
        by_level = list(levels(depth))
        sizes = _subtree_sizes(parent, by_level)
        position = _preorder(parent, self._table.ranks()[name], sizes, by_level)
        order = np.empty_like(position)
        order[position] = np.arange(position.size)
        hashes, flags = _along_paths(parent, name, by_level, self._table)
        tree = NameTree(
            table=self._table,
            parent=position[parent[order]],
            name=name[order],
            depth=depth[order],
            end=np.arange(order.size) + sizes[order],
            identity=(hashes[order] >> np.uint64(64 - ID_BITS)).astype(np.int64),
            flags=flags[order],
            inlined=~self._is_called[order],
        )
        return tree, position[self._folded]

    def _look_up(self, keys: npt.NDArray[np.int64]) -> tuple[Indices, npt.NDArray[np.bool_]]:
        if not self._keys.size:
            return np.zeros(keys.size, np.intp), np.ones(keys.size, np.bool_)
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return self._key_nodes[at], self._keys[at] != keys

    def _take(self, keys: npt.NDArray[np.int64]) -> None:
        first = self._parent.size
        self._parent = np.concatenate([self._parent, (keys >> 32).astype(np.intp)])
        self._name = np.concatenate([self._name, (keys & 0xFFFFFFFF).astype(np.intp)])
        self._is_called = np.concatenate([self._is_called, np.zeros(keys.size, np.bool_)])
        order = np.argsort(keys)
        ordered = keys[order]
        order += first
        if not self._keys.size:  # Inserting takes six times the memory.
            self._keys, self._key_nodes = ordered, order
            return
        at = np.searchsorted(self._keys, ordered)
        self._keys = np.insert(self._keys, at, ordered)
        self._key_nodes = np.insert(self._key_nodes, at, order)


def _subtree_sizes(parent: Indices, by_level: list[Indices]) -> Indices:
    sizes = np.ones(parent.size, np.intp)
    for level in reversed(by_level[1:]):
        np.add.at(sizes, parent[level], sizes[level])
    return sizes


def _preorder(parent: Indices, rank: Indices, sizes: Indices, by_level: list[Indices]) -> Indices:
    """Give each node's place: its parent's, plus one, plus the sizes of the siblings before it."""
    order = np.argsort((parent[1:] << 32) | rank[1:])
    order += 1
    before = np.cumsum(sizes[order])
    before -= sizes[order]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = np.diff(parent[order]) != 0
    before -= np.maximum.accumulate(np.where(is_first, before, 0))  # it ascends: what stands before the first of the siblings
    before += 1
    offset = np.zeros(parent.size, np.intp)
    offset[order] = before
    del order, before
    position = np.zeros(parent.size, np.intp)
    for level in by_level[1:]:
        position[level] = position[parent[level]] + offset[level]
    return position


def _along_paths(parent: Indices, name: Indices, by_level: list[Indices], table: NameTable) -> tuple[Hashes, npt.NDArray[np.uint8]]:
    """Hash each path (splitmix64's finisher over parent's hash and the name's) and gather the flags on it."""
    name_hashes = np.array(table.hashes, np.uint64)[name]
    name_flags = np.array(table.flags, np.uint8)[name]
    hashes, flags = np.zeros(parent.size, np.uint64), np.zeros(parent.size, np.uint8)
    flags[ROOT] = name_flags[ROOT]
    for level in by_level[1:]:
        above = parent[level]
        flags[level] = flags[above] | name_flags[level]
        mixed = (hashes[above] * np.uint64(0x9E3779B97F4A7C15)) ^ name_hashes[level]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes[level] = mixed ^ (mixed >> np.uint64(31))
    return hashes, flags
