# SPDX-License-Identifier: Apache-2.0
"""Trees made of trees: several services joined by name, each under a label of its own (a thread) when it has one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.profile.calltree import ROOT, Indices
from server.profile.nametable import NameTable
from server.profile.nametree import TreeBuilder
from server.profile.totals import Mask, Values, WeighedTree, add_up


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A tree to be joined; with a label it hangs under a node of that name, which several branches can share."""

    weighed: WeighedTree
    label: str | None = None


def join(branches: Sequence[Branch]) -> WeighedTree:
    """Make one tree in which equal paths of names are one node. Only nodes with a value are taken."""
    table, parents, names = NameTable(), [np.zeros(1, np.intp)], [np.zeros(1, np.intp)]
    values: list[Values] = [np.zeros(1, np.int64)]
    inlined = [np.zeros(1, np.bool_)]
    count = 1
    for branch in branches:
        above, name, own, is_inlined = _with_value(branch.weighed, table)
        top = ROOT
        if branch.label is None:
            values[0] += own[ROOT]
        else:
            top = count
            parents.append(np.zeros(1, np.intp))
            names.append(np.array([table.label(branch.label)], np.intp))
            inlined.append(np.zeros(1, np.bool_))
            values.append(own[:1])
            count += 1
        parents.append(np.where(above == ROOT, top, above + (count - 1)))
        names.append(name[1:])
        inlined.append(is_inlined[1:])
        values.append(own[1:])
        count += above.size
    builder = TreeBuilder(table)
    builder.extend(np.concatenate(parents), np.concatenate(names), np.concatenate(inlined))
    tree, nodes = builder.tree()
    own = np.zeros(len(tree), np.int64)
    np.add.at(own, nodes, np.concatenate(values))
    return add_up(tree, own)


def _with_value(weighed: WeighedTree, table: NameTable) -> tuple[Indices, Indices, Values, Mask]:
    """Give parents (of all but the root), names in `table`, self and whether inlined, of the nodes with a value in preorder."""
    tree = weighed.tree
    kept = np.flatnonzero(weighed.total > 0)
    if not kept.size:
        return np.zeros(0, np.intp), np.zeros(1, np.intp), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    distinct, inverse = np.unique(tree.name[kept], return_inverse=True)
    numbers = np.array(table.adopt(tree.table, distinct.tolist()), np.intp)
    return np.searchsorted(kept, tree.parent[kept[1:]]), numbers[inverse], weighed.own[kept], tree.inlined[kept]
