# SPDX-License-Identifier: Apache-2.0
"""The share of a few functions in each replicate of a side: what an interval was made from, to be shown as it is."""

from collections.abc import Sequence

import numpy as np

from server.profile.diff import Diff, Side
from server.profile.noise import F64
from server.profile.totals import Mask


def function_shares(diff: Diff, side: Side, names: Sequence[int], first: Mask) -> F64:
    """Give shape (names, replicates with a value): share of the replicate's total. `first` is that of server.profile.top.first_calls."""
    used = side.values[side.values.any(axis=1)].astype(np.float64)
    whole = used.sum(axis=1)
    shares = np.zeros((len(names), whole.size))
    tree = diff.tree
    for at, name in enumerate(names):
        calls = np.flatnonzero(first & (tree.name == name))
        inside = np.zeros(len(tree) + 1, np.int32)
        np.add.at(inside, calls, 1)
        np.add.at(inside, tree.end[calls], -1)
        is_in = np.cumsum(inside[:-1]) > 0
        shares[at] = used[:, is_in[side.nodes]].sum(axis=1) / np.maximum(whole, 1.0)
    return shares
