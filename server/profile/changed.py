# SPDX-License-Identifier: Apache-2.0
"""The functions whose share changed, and which frame explains each: a change is reported once per subtree.

When a function grows, so do its callers, and so does all that it calls. Of frames that changed the same way, a caller is explained by
what it calls when the rest of it did not grow along (`thinned`); what grew along with its caller is explained by the caller. What is
left over is the highest frame that explains its subtree.

Shares also make room: when one function vanishes, all others have more of what is left. A function whose share moved only as that of
unchanged code did is explained by the function that made or took the room.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from server.profile.calltree import ROOT, Indices
from server.profile.diff import Diff, Estimate, Side, Spread, counting, is_tested, judge, shares, unjudged
from server.profile.noise import F64
from server.profile.top import sum_by_name
from server.profile.totals import Mask, Values, WeighedTree

NOTHING = -1


@dataclass(frozen=True, slots=True, eq=False)
class ChangedFunctions:
    """One row per function with a value on either side, in no order. Totals count a stack once, however often it has the function."""

    name: Indices
    """Number in the tree's table."""
    a_total: Values
    b_total: Values
    a_own: Values
    b_own: Values
    change: F64
    """Share on B less share on A, of totals."""
    half: F64
    """Half the width of the 95 % interval of the change."""
    is_beyond: Mask
    """Beyond noise, among all functions tested."""
    explained_by: Indices
    """Name of the frame that explains it; NOTHING where the function is that frame itself, or its change is noise."""


def changed_functions(diff: Diff, first: Mask) -> ChangedFunctions:
    """Give the table of functions. `first` is that of server.profile.top.first_calls for the tree of the diff."""
    tree = diff.tree
    nodes = np.flatnonzero(first & (diff.a.total + diff.b.total > 0))
    nodes = nodes[nodes != ROOT]
    totals = [sum_by_name(tree, side.total, nodes) for side in (diff.a, diff.b)]
    owns = [sum_by_name(tree, side.own, np.flatnonzero(side.own)) for side in (diff.a, diff.b)]
    names = np.flatnonzero(totals[0] + totals[1])
    sides, sums = (diff.side_a, diff.side_b), (diff.a.sum, diff.b.sum)
    rows = np.flatnonzero(is_tested((totals[0], totals[1]), sums, sides))
    rows = rows[~unjudged(tree, rows, (totals[0][rows], totals[1][rows]))]
    calls = _calls_of(rows, nodes, tree.name)
    estimates = tuple(_by_function(side, diff, rows, calls) for side in sides)
    values = totals[0][rows], totals[1][rows]
    spread = judge(rows, values, estimates, counting(values, sums, sides))
    half = counting((totals[0][names], totals[1][names]), sums, sides).half()
    at = np.searchsorted(names, rows)
    half[at] = spread.half
    is_beyond = np.zeros(names.size, np.bool_)
    is_beyond[at] = spread.is_beyond
    explained_by = _explained(diff, nodes, rows[spread.is_beyond])[names]
    result = ChangedFunctions(
        name=names,
        a_total=totals[0][names],
        b_total=totals[1][names],
        a_own=owns[0][names],
        b_own=owns[1][names],
        change=shares(totals[1][names], diff.b.sum) - shares(totals[0][names], diff.a.sum),
        half=half,
        is_beyond=is_beyond,
        explained_by=explained_by,
    )
    return replace(result, explained_by=_with_room(diff, result, spread))


def explaining_nodes(diff: Diff) -> Indices:
    """Give for each node beyond noise the node that explains it (itself, when it is the one), NOTHING for the others."""
    tree, is_beyond = diff.tree, diff.is_beyond()
    beyond = diff.spread.rows[diff.spread.is_beyond]
    links = np.full(len(tree), NOTHING)
    if not beyond.size:
        return links
    a, b = shares(diff.a.total, diff.a.sum), shares(diff.b.total, diff.b.sum)
    change, mass = b - a, a + b
    parent = tree.parent[beyond]
    is_along = is_beyond[parent] & (np.sign(change[parent]) == np.sign(change[beyond]))
    along, above = beyond[is_along], parent[is_along]
    # Products instead of quotients: mass may be small. What differs by rounding is not stronger.
    is_stronger = np.abs(change[along]) * mass[above] > (1 + 1e-9) * np.abs(change[above]) * mass[along]
    strong, over = along[is_stronger], above[is_stronger]
    taken_change, taken_mass = np.zeros(len(tree)), np.zeros(len(tree))
    np.add.at(taken_change, over, change[strong])
    np.add.at(taken_mass, over, mass[strong])
    rest, rest_mass = (change - taken_change) * np.sign(change), mass - taken_mass
    # The rest is nearer to no change than to a change like that of the children.
    thinned = (taken_mass > 0) & (rest * 2 * taken_mass < np.abs(taken_change) * rest_mass)
    links[beyond] = beyond
    follows = along[~thinned[above]]
    links[follows] = tree.parent[follows]
    links = _down(links, thinned, strong, over, np.abs(change))
    return _ends(links, beyond)


def _down(links: Indices, thinned: Mask, strong: Indices, over: Indices, size: F64) -> Indices:
    """Link each thinned node to the child with the largest change: written last, so that it stays."""
    order = np.argsort(size[strong], kind="stable")
    strong, over = strong[order], over[order]
    is_down = thinned[over]
    links[over[is_down]] = strong[is_down]
    return links


def _ends(links: Indices, nodes: Indices) -> Indices:
    """Follow links to where they end; distances double, and there are no rings: down is followed only to a node that is or leads down."""
    while True:
        further = links[links[nodes]]
        if np.array_equal(further, links[nodes]):
            return links
        links[nodes] = further


def _explained(diff: Diff, calls: Indices, beyond_names: Indices) -> Indices:
    """Give for each name the name of the frame that explains the largest change among its calls."""
    tree = diff.tree
    found = np.full(len(tree.table), NOTHING)
    heads = explaining_nodes(diff)
    calls = calls[heads[calls] != NOTHING]
    calls = calls[np.argsort(np.abs(diff.changes()[calls]), kind="stable")]
    found[tree.name[calls]] = tree.name[heads[calls]]  # the last one written has the largest change
    is_beyond = np.zeros(found.size, np.bool_)
    is_beyond[beyond_names] = True
    found[~is_beyond | (found == np.arange(found.size))] = NOTHING
    return found


def _with_room(diff: Diff, values: ChangedFunctions, spread: Spread) -> Indices:
    """Explain what is no more beyond noise, when held against unchanged code, by the largest change the other way."""
    is_open = values.is_beyond & (values.explained_by == NOTHING)
    if not is_open.any():
        return values.explained_by
    root = np.sqrt(usual_ratio(diff))
    a, b = shares(values.a_total, diff.a.sum), shares(values.b_total, diff.b.sum)
    at = np.searchsorted(values.name, spread.rows)
    is_moved = is_open.copy()
    is_moved[at] &= ~spread.beyond((b / root - a * root)[at])
    makers = np.flatnonzero(is_open & ~is_moved & (np.sign(values.change) == -np.sign(np.log(root))))
    if not makers.size:
        return values.explained_by
    maker = values.name[makers[np.argmax(np.abs(values.change[makers]))]]
    is_moved &= np.sign(values.change) == np.sign(np.log(root))
    is_moved |= np.isin(values.explained_by, values.name[is_moved])
    return np.where(is_moved, maker, values.explained_by)


def held_changes(diff: Diff, values: ChangedFunctions) -> F64:
    """Give the changes held against unchanged code: without the room that others made or took."""
    root = usual_ratio(diff) ** 0.5
    held: F64 = shares(values.b_total, diff.b.sum) / root - shares(values.a_total, diff.a.sum) * root
    return held


def usual_ratio(diff: Diff) -> float:
    """Give the share on B over the share on A of unchanged code: the median over all self time that both sides have; 1 of none."""
    rows = diff.spread.rows
    a, b = shares(diff.a.own[rows], diff.a.sum), shares(diff.b.own[rows], diff.b.sum)
    is_both = (a > 0) & (b > 0)
    ratios, mass = b[is_both] / a[is_both], (a + b)[is_both]
    if not ratios.size:
        return 1.0
    order = np.argsort(ratios, kind="stable")
    reach = np.cumsum(mass[order])
    return float(ratios[order][np.searchsorted(reach, reach[-1] / 2)])


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Outermost calls of some functions: node, and place of the function among them."""

    node: Indices
    row: Indices


def _calls_of(rows: Indices, nodes: Indices, name: Indices) -> _Calls:
    if not rows.size:
        return _Calls(rows, rows)
    at = np.minimum(np.searchsorted(rows, name[nodes]), rows.size - 1)
    is_in = rows[at] == name[nodes]
    return _Calls(nodes[is_in], at[is_in])


def _by_function(side: Side, diff: Diff, rows: Indices, calls: _Calls) -> Estimate:
    """Add up the outermost calls of each function by replicate, over the nodes that stacks end in."""
    ends: npt.NDArray[np.intp] = np.flatnonzero(_own_of(side, diff))
    of_stack = np.searchsorted(ends, side.nodes)  # stacks without a value may land anywhere: they add 0
    first, last = np.searchsorted(ends, calls.node), np.searchsorted(ends, diff.tree.end[calls.node])
    found: list[F64] = []
    whole, prefix = [], np.zeros(ends.size + 2)
    strata = list(side.each_stratum())
    for stacks in strata:
        for r in range(side.replicates):
            np.cumsum(np.bincount(of_stack[stacks], side.values[r, stacks], ends.size + 1), out=prefix[1:])
            whole.append(prefix[-1])
            found.append(np.bincount(calls.row, prefix[last] - prefix[first], rows.size).astype(np.float64, copy=False))
    return Estimate(np.array(found).T, np.array(whole), len(strata))


def _own_of(side: Side, diff: Diff) -> Values:
    weighed: WeighedTree = diff.a if side is diff.side_a else diff.b
    return weighed.own
