# SPDX-License-Identifier: Apache-2.0
"""One tree that holds the stacks of several, and where the nodes of each are in it. Frames meet by name and binary.

Unlike `join`, values stay outside: any number of columns can be laid on the one tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.profile.calltree import ROOT, Indices
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some nodes of a tree (with their ancestors, which are taken with them), under a level of their own when there is a label."""

    tree: NameTree
    used: Indices
    label: str | None = None


def union(parts: Sequence[Part]) -> tuple[NameTree, list[Indices]]:
    """Give the tree and, for each part, the nodes that its used ones became."""
    table, parents, names = NameTable(), [np.zeros(1, np.intp)], [np.zeros(1, np.intp)]
    inlined = [np.zeros(1, np.bool_)]
    count, places = 1, []
    for part in parts:
        kept = _with_ancestors(part.tree, part.used)
        top = ROOT
        if part.label is not None:
            top = count
            parents.append(np.zeros(1, np.intp))
            names.append(np.array([table.label(part.label)], np.intp))
            inlined.append(np.zeros(1, np.bool_))
            count += 1
        above = np.searchsorted(kept, part.tree.parent[kept[1:]])
        parents.append(np.where(above == ROOT, top, above + (count - 1)))
        distinct, inverse = np.unique(part.tree.name[kept[1:]], return_inverse=True)
        names.append(np.array(table.adopt(part.tree.table, distinct.tolist()), np.intp)[inverse])
        inlined.append(part.tree.inlined[kept[1:]])
        place = np.searchsorted(kept, part.used)
        places.append(np.where(place == ROOT, top, place + (count - 1)))
        count += above.size
    builder = TreeBuilder(table)
    builder.extend(np.concatenate(parents), np.concatenate(names), np.concatenate(inlined))
    tree, nodes = builder.tree()
    return tree, [nodes[place] for place in places]


def _with_ancestors(tree: NameTree, used: Indices) -> Indices:
    """Give the nodes that have a used one in their subtree, the root always, ascending."""
    prefix = np.zeros(len(tree) + 1, np.intp)
    prefix[used + 1] = 1
    np.cumsum(prefix, out=prefix)
    has_used = prefix[tree.end] > prefix[:-1]
    has_used[ROOT] = True
    return np.flatnonzero(has_used)
