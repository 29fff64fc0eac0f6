# SPDX-License-Identifier: Apache-2.0
"""Values on a tree: what stands on each node itself, and the totals of subtrees as differences of preorder prefix sums.

Sums are exact: float64 holds integers up to 2^53; larger weights are added in two halves of 32 bits and kept as int64.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import ROOT, Indices
from server.profile.nametree import NameTree

Values = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_EXACT = float(1 << 53)
_HALF = float(1 << 32)


@dataclass(frozen=True, slots=True, eq=False)
class WeighedTree:
    """A tree and one column of values on it, by node."""

    tree: NameTree
    own: Values
    """Self: value of the stacks that end in the node."""
    total: Values
    """Value of the stacks that pass through or end in the node."""

    @property
    def sum(self) -> int:
        """Value of all stacks."""
        return int(self.total[ROOT])


def weigh(tree: NameTree, nodes: Indices, weights: npt.NDArray[np.float64]) -> WeighedTree:
    """Lay `weights` (integers >= 0) on the node each stands for and add up the subtrees."""
    return add_up(tree, _sum_by_node(nodes, weights, len(tree)))


def add_up(tree: NameTree, own: Values) -> WeighedTree:
    """Make totals from self values."""
    prefix = np.zeros(own.size + 1, np.int64)
    np.cumsum(own, out=prefix[1:])
    total = prefix[tree.end]
    total -= prefix[:-1]
    return WeighedTree(tree, own, total)


def value_with_flags(weighed: WeighedTree, flags: int) -> int:
    """Add up the stacks that have any of `flags` (PathFlag) on their path."""
    return int(weighed.own[(weighed.tree.flags & np.uint8(flags)) != 0].sum())


def value_of_leaves(weighed: WeighedTree, is_leaf_name: Mask) -> int:
    """Add up the stacks whose innermost frame has one of the masked names."""
    return int(weighed.own[is_leaf_name[weighed.tree.name]].sum())


def outermost(matched: Mask, end: Indices, first: int = 0) -> Mask:
    """Of the matched nodes first..first+n, mask those that no other matched one stands above: each stack once."""
    at = np.flatnonzero(matched)
    result = np.zeros(matched.size, np.bool_)
    if at.size:
        reach = np.maximum.accumulate(end[at + first])
        is_outer = np.ones(at.size, np.bool_)
        is_outer[1:] = at[1:] + first >= reach[:-1]
        result[at[is_outer]] = True
    return result


def _sum_by_node(nodes: Indices, weights: npt.NDArray[np.float64], size: int) -> Values:
    if weights.size and float(weights.sum()) >= _EXACT:
        high = np.floor(weights / _HALF)
        upper = np.bincount(nodes, high, size).astype(np.int64) << 32
        return upper + np.bincount(nodes, weights - high * _HALF, size).astype(np.int64)
    return np.bincount(nodes, weights, size).astype(np.int64)
