# SPDX-License-Identifier: Apache-2.0
"""Frame operators: trees made of a tree by leaving out stacks or frames, by hanging stacks up elsewhere, or by turning them round.

An operator says, for every node, what the stacks that end there become: a node of the new tree, or nothing. So any number of columns of
values goes through it, and operators follow one another. Levels that are no frames (threads, hosts: labels at depth 1) stay on top.
All in whole arrays; a level of the tree is the only loop.
"""

from dataclasses import dataclass

import numpy as np

from server.profile.calltree import ROOT, Indices
from server.profile.nametable import NameSort, NameTable
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.totals import Mask, Values, WeighedTree, add_up, outermost

DROPPED = -1
"""Place of a stack that is left out; new number of a name whose frames are."""


@dataclass(frozen=True, slots=True, eq=False)
class Reshaped:
    """A tree, and where stacks of the one it was made of end in it."""

    tree: NameTree
    place: Indices
    """By node of the old tree; DROPPED where its stacks are left out. Nodes that no stack ends in may have any."""

    def then(self, other: "Reshaped") -> "Reshaped":
        """Follow with an operator that was applied to this tree."""
        return Reshaped(other.tree, np.where(self.place == DROPPED, DROPPED, other.place[self.place]))

    def weighed(self, own: Values) -> WeighedTree:
        """Lay self values of the old tree on the new one."""
        ends = np.flatnonzero(own)
        ends = ends[self.place[ends] != DROPPED]
        values = np.zeros(len(self.tree), np.int64)
        np.add.at(values, self.place[ends], own[ends])
        return add_up(self.tree, values)


def unchanged(tree: NameTree) -> Reshaped:
    """All stacks as they are."""
    return Reshaped(tree, np.arange(len(tree)))


def with_frame(tree: NameTree, matched: Mask) -> Reshaped:
    """Only stacks that have a frame with one of the masked names."""
    inside = below(tree, matched[tree.name]) >= 0
    return Reshaped(tree, np.where(inside, np.arange(len(tree)), DROPPED))


def without_frame(tree: NameTree, matched: Mask) -> Reshaped:
    """Only stacks that have no such frame."""
    inside = below(tree, matched[tree.name]) >= 0
    return Reshaped(tree, np.where(inside, DROPPED, np.arange(len(tree))))


def callees(tree: NameTree, matched: Mask, used: Mask) -> Reshaped:
    """What the masked functions call: each stack from its outermost such frame on."""
    top = below(tree, matched[tree.name])
    kept = np.flatnonzero((top >= 0) & with_ancestors(tree, used))
    parent = np.where(top[kept] == kept, _label_of(tree)[kept], tree.parent[kept])
    return _hung(tree, kept, parent, Renaming(tree.table, tree.name))


def callers(tree: NameTree, matched: Mask, used: Mask) -> Reshaped:
    """Who calls the masked functions: from the outermost such frame of each stack up to the root, and what it calls left out."""
    top = below(tree, matched[tree.name])
    return _turned(tree, np.where(used, top, DROPPED))


def turned(tree: NameTree, used: Mask) -> Reshaped:
    """Leaf first: what runs, then who called it."""
    return _turned(tree, np.where(used, np.arange(len(tree)), DROPPED))


@dataclass(frozen=True, slots=True, eq=False)
class Renaming:
    """New names of old ones: numbers in `table` by old number, DROPPED to leave frames out (their time goes to who called them)."""

    table: NameTable
    names: Indices
    is_collapsed: bool = False
    """A frame with the name of its caller is part of it."""


def renamed(tree: NameTree, renaming: Renaming, used: Mask) -> Reshaped:
    """Name frames anew, and fold those that have no name or their caller's."""
    name = renaming.names[tree.name]
    name[ROOT] = 0
    above = _nearest(tree.parent, name != DROPPED)
    kept = name != DROPPED
    if renaming.is_collapsed:
        caller = above[tree.parent]
        kept &= name != name[caller]
        kept[ROOT] = True
        above = _nearest(tree.parent, kept)
    some = np.flatnonzero(kept & with_ancestors(tree, used))
    some = some[some != ROOT]
    hung = _hung(tree, some, above[tree.parent[some]], Renaming(renaming.table, name))
    hung.place[ROOT] = ROOT
    return Reshaped(hung.tree, hung.place[above])


def below(tree: NameTree, is_matched: Mask) -> Indices:
    """For each node the outermost matched one on its path, itself included; -1 where there is none."""
    tops = np.flatnonzero(outermost(is_matched, tree.end))
    starts = np.zeros(len(tree) + 1, np.intp)
    starts[tops] += tops + 1
    np.subtract.at(starts, tree.end[tops], tops + 1)
    found: Indices = np.cumsum(starts[:-1]) - 1
    return found


def with_ancestors(tree: NameTree, used: Mask) -> Mask:
    """Mask the nodes that have a used one in their subtree."""
    prefix = np.zeros(len(tree) + 1, np.intp)
    np.cumsum(used, out=prefix[1:])
    mask: Mask = prefix[tree.end] > prefix[:-1]
    return mask


def _nearest(parent: Indices, kept: Mask) -> Indices:
    """For each node the nearest kept one on its path, itself included; distances double."""
    up = np.where(kept, np.arange(parent.size), parent)
    while not kept[up].all():
        up = up[up]
    return up


def _label_of(tree: NameTree) -> Indices:
    """For each node the label on top of its stack, ROOT where there is none."""
    sorts = np.array(tree.table.sorts, np.uint8)
    is_label = (tree.depth == 1) & (sorts[tree.name] == NameSort.LABEL)
    return np.maximum(below(tree, is_label), ROOT)


def _hung(tree: NameTree, kept: Indices, parent: Indices, names: Renaming) -> Reshaped:
    """Build a tree of some nodes (ascending), each under `parent`: a kept node, a label, or ROOT. `names` are by node."""
    labels = np.setdiff1d(parent[parent != ROOT], kept)
    nodes = np.sort(np.concatenate([[ROOT], labels, kept]))
    above = np.zeros(nodes.size, np.intp)
    above[np.searchsorted(nodes, kept)] = np.searchsorted(nodes, parent)
    builder = TreeBuilder(names.table)
    builder.extend(above, names.names[nodes], tree.inlined[nodes])
    made, folded = builder.tree()
    place = np.full(len(tree), DROPPED)
    place[kept] = folded[np.searchsorted(nodes, kept)]
    return Reshaped(made, place)


def _turned(tree: NameTree, start: Indices) -> Reshaped:
    """Hang up the path from each start to its label, or the root, the other way round; `start` is by node, DROPPED to leave it out."""
    starts = np.unique(start[start != DROPPED])
    label = _label_of(tree)[starts]
    tops = np.unique(label)
    hung = tops[tops != ROOT]
    parents, names = [np.zeros(1 + hung.size, np.intp)], [np.concatenate([[0], tree.name[hung]])]
    under = np.where(label == ROOT, ROOT, 1 + np.searchsorted(hung, label))
    ends, count = np.full(len(tree), DROPPED), 1 + hung.size
    is_top = np.zeros(len(tree), np.bool_)
    is_top[ROOT] = is_top[hung] = True
    node = begun = starts
    while True:
        is_done = is_top[node]
        ends[begun[is_done]] = under[is_done]
        under, node, begun = under[~is_done], node[~is_done], begun[~is_done]
        if not node.size:
            break
        keys, inverse = np.unique((under << 32) | tree.name[node], return_inverse=True)
        parents.append((keys >> 32).astype(np.intp))
        names.append((keys & 0xFFFFFFFF).astype(np.intp))
        under, node = inverse + count, tree.parent[node]
        count += keys.size
    builder = TreeBuilder(tree.table)
    builder.extend(np.concatenate(parents), np.concatenate(names))
    made, folded = builder.tree()
    place = np.full(len(tree), DROPPED)
    is_placed = start != DROPPED
    place[is_placed] = folded[ends[start[is_placed]]]
    return Reshaped(made, place)
