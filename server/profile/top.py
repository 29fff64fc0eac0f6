# SPDX-License-Identifier: Apache-2.0
"""The table of functions: self, and total counted once per stack however often the function calls itself."""

from dataclasses import dataclass

import numpy as np

from server.profile.calltree import Indices
from server.profile.nametree import NameTree
from server.profile.totals import Mask, Values, WeighedTree


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValues:
    """One row per function with a value, in no order."""

    name: Indices
    """Number in the tree's table."""
    own: Values
    total: Values


def first_calls(tree: NameTree) -> Mask:
    """Mask the nodes that have no node of the same name above them. Depends on the tree alone: keep it."""
    order = np.argsort(tree.name, kind="stable")
    names, end = tree.name[order], tree.end[order]
    # Ends of each name in a band of their own, so that one running maximum serves all names.
    band = names * np.intp(len(tree) + 1)
    reach = np.maximum.accumulate(end + band)
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = order[1:] + band[1:] >= reach[:-1]
    mask = np.empty(order.size, np.bool_)
    mask[order] = is_first
    return mask


def function_values(weighed: WeighedTree, first: Mask) -> FunctionValues:
    """Add up each function; the root is none. `first` is that of `first_calls`."""
    tree = weighed.tree
    own = sum_by_name(tree, weighed.own, np.flatnonzero(weighed.own))
    total = sum_by_name(tree, weighed.total, np.flatnonzero(first & (weighed.total > 0)))
    own[0] = total[0] = 0
    names = np.flatnonzero(total)
    return FunctionValues(names, own[names], total[names])


def sum_by_name(tree: NameTree, values: Values, nodes: Indices) -> Values:
    """Add up the values of some nodes by the number of their name."""
    sums = np.zeros(len(tree.table), np.int64)
    np.add.at(sums, tree.name[nodes], values[nodes])
    return sums
