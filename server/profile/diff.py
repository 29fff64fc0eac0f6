# SPDX-License-Identifier: Apache-2.0
"""Two sides of one tree: shares, their change, and whether the change is more than noise.

A share is a value over its side's total, so that sides of different length and rate compare. Its variance is taken from the spread
over replicates (parts of the side that could have come out differently: hosts, stretches of time) by the ratio estimator

    V = R / (R - 1) * sum over r of (y_r - p x_r)^2 / X^2        y_r of the frame, x_r of all, p = Y / X      (Cochran, 1977, 6.3)

and is never less than what counting alone does, p (1 - p) / n with n samples observed and p that of both sides together; a side of one
replicate has only that. Of a side in groups (by host, say) the groups are strata: what differs between them is no noise, so residuals
are taken from the mean of their stratum, and R counts within it (the combined estimator, Cochran 6.11). The difference is a Welch t.
Frames of few samples or under 0.01 % of both sides are not tested: noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from server.profile.calltree import ROOT, Indices
from server.profile.nametable import PathFlag
from server.profile.nametree import NameTree
from server.profile.noise import F64, KNOWN, Z_95, discoveries, normal_deviates, t_limits, two_sided
from server.profile.totals import Mask, WeighedTree, add_up, weigh

U64 = npt.NDArray[np.uint64]

LEAST_OBSERVED = 10
"""Samples of both sides together that a frame needs to be tested."""
LEAST_SHARE = 1e-4
"""Share of a side, on average of both, that a frame needs to be tested."""


class Shape(StrEnum):
    """Whose values give the widths."""

    B = "b"
    A = "a"
    UNION = "union"
    """The larger of the two shares of each stack: what vanished has its width too."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What was sampled: one column a stack (in any order, any number a node), one row a replicate."""

    nodes: Indices
    values: U64
    """Shape (replicates, stacks)."""
    observed: int
    """Samples, before any scaling; what counting noise follows from."""
    strata: Indices | None = None
    """Stratum of each stack, ascending, when there are several: each has replicates of its own in the rows."""

    @property
    def replicates(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def used(self) -> int:
        """Number of replicates with a value."""
        return sum(int(self.values[:, stacks].any(axis=1).sum()) for stacks in self.each_stratum())

    def each_stratum(self) -> Iterator[slice]:
        """Give the stacks of each stratum."""
        edges = np.flatnonzero(np.diff(self.strata)) + 1 if self.strata is not None else np.zeros(0, np.intp)
        for start, end in zip([0, *edges.tolist()], [*edges.tolist(), self.nodes.size], strict=True):
            yield slice(start, end)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What was tested: variances and verdicts of some rows (nodes, or functions)."""

    rows: Indices
    """Ascending."""
    half: F64
    """Half the width of the 95 % interval of the change."""
    freedom: F64
    """Degrees of freedom of the interval."""
    is_beyond: Mask
    """Beyond noise."""

    def beyond(self, change: F64) -> Mask:
        """Tell which changes, of the same intervals, are beyond noise among all of them."""
        error = self.half / t_limits(self.freedom)
        t = np.divide(np.abs(change), error, out=np.zeros(change.size), where=error > 0)
        chosen: Mask = discoveries(two_sided(normal_deviates(t, self.freedom))) & (change != 0)
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Diff:
    """Two sides on one tree. diff(a, b) = -diff(b, a)."""

    a: WeighedTree
    b: WeighedTree
    side_a: Side
    side_b: Side
    spread: Spread

    @property
    def tree(self) -> NameTree:
        """The tree of both."""
        return self.a.tree

    def is_beyond(self) -> Mask:
        """Mask the nodes beyond noise."""
        mask = np.zeros(len(self.tree), np.bool_)
        mask[self.spread.rows[self.spread.is_beyond]] = True
        return mask

    def half_widths(self, nodes: Indices) -> F64:
        """Half the width of the 95 % interval of the change of some nodes; of those that were not tested, by counting alone."""
        counted = counting((self.a.total[nodes], self.b.total[nodes]), (self.a.sum, self.b.sum), (self.side_a, self.side_b)).half()
        if not self.spread.rows.size:
            return counted
        at = np.minimum(np.searchsorted(self.spread.rows, nodes), self.spread.rows.size - 1)
        return np.where(self.spread.rows[at] == nodes, self.spread.half[at], counted)

    def changes(self) -> F64:
        """Share on B less share on A, by node."""
        return shares(self.b.total, self.b.sum) - shares(self.a.total, self.a.sum)


def compare(tree: NameTree, side_a: Side, side_b: Side) -> Diff:
    """Lay two sides on a tree that holds the stacks of both."""
    a, b = (weigh(tree, side.nodes, side.values.sum(axis=0).astype(np.float64)) for side in (side_a, side_b))
    sides, sums = (side_a, side_b), (a.sum, b.sum)
    rows = np.flatnonzero(is_tested((a.total, b.total), sums, sides))
    rows = rows[(rows != ROOT) & ~_is_elsewhere(tree.flags[rows], (a.total[rows], b.total[rows]))]
    values = a.total[rows], b.total[rows]
    stretch = _stretches(tree, rows)
    estimates = tuple(_by_node(side, stretch, (rows, tree.end[rows])) for side in sides)
    return Diff(a, b, side_a, side_b, judge(rows, values, estimates, counting(values, sums, sides)))


def _is_elsewhere(flags: npt.NDArray[np.uint8], values: "Both") -> Mask:
    """Mask what has a frame without a name and is on one side alone: it may be the same code at another place of another build."""
    is_one_sided = (values[0] == 0) | (values[1] == 0)
    elsewhere: Mask = is_one_sided & (flags & np.uint8(PathFlag.UNNAMED) != 0)
    return elsewhere


def unjudged(tree: NameTree, names: Indices, values: "Both") -> Mask:
    """Mask the functions that cannot be compared, as `compare` leaves out nodes. `values` are theirs on A and on B."""
    return _is_elsewhere(np.array(tree.table.flags, np.uint8)[names], values)


Both = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Values of the same rows on A and on B."""


def counting(values: Both, sums: tuple[int, int], sides: tuple[Side, Side]) -> "Counting":
    """Give what counting alone lets come out differently. A row has the share of its side's samples that it has of its values."""
    observed = sum(shares(value, total) * side.observed for value, total, side in zip(values, sums, sides, strict=True))
    return Counting(np.asarray(observed), sides[0].observed, sides[1].observed)


@dataclass(frozen=True, slots=True, eq=False)
class Counting:
    """How many samples there were: by row, both sides together, and of each side in all."""

    rows: F64
    a: int
    b: int

    def variances(self) -> tuple[F64, F64]:
        """Give the variance of each side's share by counting alone, were there no change."""
        p = self.rows / max(self.a + self.b, 1)
        both = np.maximum(p * (1 - p), 0.0)
        return both / max(self.a, 1), both / max(self.b, 1)

    def half(self) -> F64:
        """Half the width of the 95 % interval by counting alone; 1 where a side is empty."""
        if not self.a or not self.b:
            return np.ones(self.rows.size)
        a, b = self.variances()
        return Z_95 * np.sqrt(a + b)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Values of rows by replicate; `values` has shape (rows, replicates), `whole` is the side's total by replicate.

    Replicates of a stratum follow one another, as many in each; those without a value do not count.
    """

    values: F64
    whole: F64
    strata: int = 1

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance: replicates less strata. A stratum of one replicate has none to give."""
        used = (self.whole > 0).reshape(self.strata, -1).sum(axis=1)
        return int((used[used > 0] - 1).sum())

    def variances(self) -> F64 | None:
        """The ratio estimator's; None without freedom. What a stratum of one replicate is off by counts whole."""
        if not self.freedom:
            return None
        share = self.values.sum(axis=1) / self.whole.sum()
        variances = np.zeros(share.size)
        for values, whole in zip(np.split(self.values, self.strata, axis=1), np.split(self.whole, self.strata), strict=True):
            used = whole > 0
            count = int(used.sum())
            residuals = values[:, used] - np.outer(share, whole[used])
            if count > 1:
                residuals -= residuals.mean(axis=1, keepdims=True)
            variances += np.einsum("ij,ij->i", residuals, residuals) * (count / max(count - 1, 1))
        return variances / float(self.whole.sum()) ** 2


def judge(rows: Indices, values: Both, estimates: tuple[Estimate, ...], counting: Counting) -> Spread:
    """Test the change of each row."""
    total, weight = np.zeros(rows.size), np.zeros(rows.size)
    for estimate, floor in zip(estimates, counting.variances(), strict=True):
        found = estimate.variances()
        variance = floor if found is None else np.maximum(found, floor)
        total += variance
        weight += variance**2 / (KNOWN if found is None else estimate.freedom)
    freedom = np.divide(total**2, weight, out=np.full(rows.size, KNOWN), where=weight > 0)
    sums = [float(estimate.whole.sum()) for estimate in estimates]
    change = shares(values[1], sums[1]) - shares(values[0], sums[0])
    spread = Spread(rows, t_limits(freedom) * np.sqrt(total), freedom, np.zeros(rows.size, np.bool_))
    return replace(spread, is_beyond=spread.beyond(change))


def is_tested(values: Both, sums: tuple[int, int], sides: tuple[Side, Side]) -> Mask:
    """Mask the rows worth a test; none when a side is empty. Depends on both sides together only, as honest filters must."""
    if not all(sums):
        return np.zeros(values[0].size, np.bool_)
    is_wide = values[0] * (0.5 / sums[0]) + values[1] * (0.5 / sums[1]) >= LEAST_SHARE
    wide = np.flatnonzero(is_wide)
    is_wide[wide] = counting((values[0][wide], values[1][wide]), sums, sides).rows >= LEAST_OBSERVED - 0.5
    tested: Mask = is_wide
    return tested


def shares(values: npt.NDArray[np.int64], whole: float) -> F64:
    """Give parts of a whole; 0 of nothing. Equal fractions give equal floats, whatever the two sides were scaled by."""
    return values / float(whole) if whole else np.zeros(values.size)


def shaped(diff: Diff, shape: Shape) -> WeighedTree:
    """Give the tree with the widths of a shape. The union is in units of the side that has more."""
    if shape is Shape.A:
        return diff.a
    if shape is Shape.B or not diff.a.sum:
        return diff.b
    if not diff.b.sum:
        return diff.a
    whole = max(diff.a.sum, diff.b.sum)
    own = np.maximum(*(np.rint(side.own * (whole / side.sum)) for side in (diff.a, diff.b)))
    return add_up(diff.tree, own.astype(np.int64))


def _stretches(tree: NameTree, rows: Indices) -> Indices:
    """Number, for each node, the stretches between where the subtrees of some rows start and end."""
    is_edge = np.zeros(len(tree) + 1, np.bool_)
    is_edge[rows] = is_edge[tree.end[rows]] = True
    return np.cumsum(is_edge)


def _by_node(side: Side, stretch: Indices, rows: tuple[Indices, Indices]) -> Estimate:
    """Add up subtrees, of which first and end are given, by replicate: stacks into stretches, then differences of prefix sums."""
    count = int(stretch[-1]) + 1
    of_stack, first, last = stretch[side.nodes], stretch[rows[0]], stretch[rows[1]]
    prefix, found, whole = np.zeros(count + 1), [], []
    strata = list(side.each_stratum())
    for stacks in strata:
        for r in range(side.replicates):
            np.cumsum(np.bincount(of_stack[stacks], side.values[r, stacks], count), out=prefix[1:])
            found.append(prefix[last] - prefix[first])
            whole.append(prefix[-1])
    return Estimate(np.array(found).T, np.array(whole), len(strata))
