# SPDX-License-Identifier: Apache-2.0
"""Stacks that go on in a second stack: from the frame that waited, over a mark, into the frames of who woke it or held it, leaf first.

    root -> ... -> blocked frame -> [woken by] -> waker's leaf -> ... -> waker's root

Read from the root it is a story: who called whom, who waited, and, mirrored, where the end of the waiting came from.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from server.profile.calltree import ROOT, Indices
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.totals import Values, WeighedTree, add_up


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Stacks as nodes of one tree, with the values that stand on them. A second of ROOT is none: the stack ends where it waited."""

    first: Indices
    second: Indices
    values: Values


class _Growing:
    """Nodes of the tree that is made, level by level: parents and names, and what ends in them."""

    def __init__(self) -> None:
        self.parents: list[Indices] = [np.zeros(1, np.intp)]
        self.names: list[Indices] = [np.zeros(1, np.intp)]
        self.values: list[Values] = [np.zeros(1, np.int64)]
        self.count = 1

    def level(self, under: Indices, name: Indices) -> Indices:
        """Add the distinct (parent, name); gives the node of each."""
        keys, inverse = np.unique((under << 32) | name, return_inverse=True)
        self.parents.append((keys >> 32).astype(np.intp))
        self.names.append((keys & 0xFFFFFFFF).astype(np.intp))
        self.values.append(np.zeros(keys.size, np.int64))
        nodes: Indices = inverse + self.count
        self.count += keys.size
        return nodes

    def end(self, nodes: Indices, values: Values) -> None:
        """Let values end in nodes of the level added last."""
        np.add.at(self.values[-1], nodes - (self.count - self.values[-1].size), values)


def mirrored(tree: NameTree, pairs: Pairs, mark: str) -> WeighedTree:
    """Lay the pairs on a tree of their own."""
    table = NameTable()
    distinct = np.unique(np.concatenate([tree.name[_with_ancestors(tree, nodes)] for nodes in (pairs.first, pairs.second)]))
    taken = np.zeros(int(distinct.max(initial=0)) + 1, np.intp)
    taken[distinct] = table.adopt(tree.table, distinct.tolist())
    name_of = taken[np.minimum(tree.name, taken.size - 1)]
    growing = _Growing()
    under = _walk_down(tree, pairs, name_of, growing)
    _walk_mirror(tree, (pairs, under), name_of, growing, table.mark(mark))
    builder = TreeBuilder(table)
    builder.extend(np.concatenate(growing.parents), np.concatenate(growing.names))
    made, nodes = builder.tree()
    own = np.zeros(len(made), np.int64)
    np.add.at(own, nodes, np.concatenate(growing.values))
    return add_up(made, own)


def _walk_down(tree: NameTree, pairs: Pairs, name_of: Indices, growing: _Growing) -> Indices:
    """Add the first stacks from the root on; gives, for each pair, the node of its blocked frame."""
    used = _with_ancestors(tree, pairs.first)
    place = np.zeros(len(tree), np.intp)
    own = np.zeros(len(tree), np.int64)
    is_end = pairs.second == ROOT
    np.add.at(own, pairs.first[is_end], pairs.values[is_end])
    growing.values[0] += own[ROOT]
    depths = tree.depth[used]
    order = used[np.argsort(depths, kind="stable")]
    bounds = np.searchsorted(np.sort(depths), np.arange(1, int(depths.max(initial=0)) + 2))
    for start, stop in itertools.pairwise(bounds.tolist()):
        nodes = order[start:stop]
        place[nodes] = growing.level(place[tree.parent[nodes]], name_of[nodes])
        growing.end(place[nodes], own[nodes])
    return place[pairs.first]


def _walk_mirror(tree: NameTree, laid: tuple[Pairs, Indices], name_of: Indices, growing: _Growing, mark: int) -> None:
    """Add the second stacks below the mark, from the leaf on."""
    pairs, under = laid
    open_ones = np.flatnonzero(pairs.second != ROOT)
    node, value = pairs.second[open_ones], pairs.values[open_ones]
    if not node.size:
        return
    under = growing.level(under[open_ones], np.full(node.size, mark, np.intp))
    while node.size:
        under = growing.level(under, name_of[node])
        node = tree.parent[node]
        is_done = node == ROOT
        growing.end(under[is_done], value[is_done])
        under, node, value = under[~is_done], node[~is_done], value[~is_done]


def _with_ancestors(tree: NameTree, nodes: Indices) -> Indices:
    """Give the nodes that have one of `nodes` in their subtree, ascending; the root always."""
    prefix = np.zeros(len(tree) + 1, np.intp)
    prefix[nodes + 1] = 1
    np.cumsum(prefix, out=prefix)
    has_one = prefix[tree.end] > prefix[:-1]
    has_one[ROOT] = True
    return np.flatnonzero(has_one)
