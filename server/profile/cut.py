# SPDX-License-Identifier: Apache-2.0
"""What can be seen of a tree: nodes at least half a pixel wide, the rest of each parent folded into one trimmed child.

All in whole arrays: the mask and the sums over the subtree in view, the layout over the few thousand nodes that stay.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.totals import Mask, Values, WeighedTree

_Scalar = TypeVar("_Scalar", bound=np.generic)

TRIMMED = -1
"""Name of a trimmed child."""
MOST_NODES = 60_000
"""More are never sent; a graph of 2,400 half pixels has 6-10 thousand."""


@dataclass(frozen=True, slots=True)
class View:
    """How much can be seen."""

    width_px: int
    root: int = 0
    """Node that fills the width."""
    depth: int = 1000
    """Levels below the root; deeper ones are folded."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Nodes in preorder as columns; the first is the root of the view."""

    node: Indices
    """Number in the tree; of a trimmed child: its parent's."""
    name: Indices
    """Number in the tree's table; TRIMMED for a trimmed child."""
    depth: Indices
    """0 for the root of the view."""
    start: Values
    """Value to the left of the node, from the left edge of the view. Self stands to the right of the children."""
    own: Values
    total: Values
    identity: npt.NDArray[np.int64]
    """Of a trimmed child: its parent's, which is where to look closer."""
    hidden: Indices
    """Frames folded into a trimmed child; 0 for the others."""
    matched: Mask
    """The name matches the search; for a trimmed child: one of its hidden ones does."""
    trimmed_frames: int
    """Frames with a value in the view that are not drawn, in trimmed children or narrower still."""
    trimmed_value: int
    """What these have in total."""


def cut(weighed: WeighedTree, view: View, matched_names: Mask | None = None) -> Cut:
    """Give the nodes of the view; an empty tree gives its root alone. `matched_names` is by number of name."""
    tree, first, last = weighed.tree, view.root, int(weighed.tree.end[view.root])
    total = weighed.total[first:last]
    threshold = max(1, -(-int(total[0]) // (2 * view.width_px)))
    kept = _kept(weighed, view, threshold)
    at = kept + first
    matched = matched_names[tree.name[first:last]] & (total > 0) if matched_names is not None else None
    own, totals, parent, end = weighed.own[at], total[kept], np.searchsorted(at, tree.parent[at[1:]]), tree.end[at] - first
    value = _less_children(totals, parent) - own
    frames = _less_children(_counts(total > 0, kept, end), parent) - (totals > 0)
    nothing = np.zeros(at.size, np.bool_)
    matches = nothing if matched is None else _less_children(_counts(matched, kept, end), parent) - matched[kept] > 0
    shown = Cut(
        node=at,
        name=tree.name[at],
        depth=tree.depth[at] - tree.depth[first],
        start=_starts(own + value, np.searchsorted(kept, end)),
        own=own,
        total=totals,
        identity=tree.identity[at],
        hidden=np.zeros(at.size, np.intp),
        matched=nothing if matched is None else matched[kept],
        trimmed_frames=int(frames.sum()),
        trimmed_value=int(value.sum()),
    )
    return _with_trimmed(shown, _Folded(np.searchsorted(kept, end), value, frames, matches), threshold)


@dataclass(frozen=True, slots=True, eq=False)
class _Folded:
    """What is hidden directly under each kept node; `end` is that of its subtree among the kept ones."""

    end: Indices
    value: Values
    frames: Indices
    matched: Mask


def _kept(weighed: WeighedTree, view: View, threshold: int) -> Indices:
    """Choose nodes, by place in the view. A parent is never narrower than its child, so parents of kept nodes are kept."""
    first, last = view.root, int(weighed.tree.end[view.root])
    total, depth = weighed.total[first:last], weighed.tree.depth
    kept = np.flatnonzero(total >= threshold)
    kept = kept[depth[kept + first] <= depth[first] + view.depth]
    if kept.size > MOST_NODES:
        limit = np.partition(total[kept], kept.size - MOST_NODES)[kept.size - MOST_NODES]
        kept = kept[total[kept] > limit]
    return kept if kept.size and kept[0] == 0 else np.concatenate([np.zeros(1, np.intp), kept])


def _counts(mask: Mask, kept: Indices, end: Indices) -> Indices:
    """Count the masked nodes in the subtree of each kept one, itself included."""
    prefix = np.zeros(mask.size + 1, np.int32)
    np.cumsum(mask, out=prefix[1:])
    counts: Indices = (prefix[end] - prefix[kept]).astype(np.intp)
    return counts


def _less_children(values: Values, parent: Indices) -> Values:
    """Take from each node's value that of its kept children; `parent` is that of all but the first."""
    rest = values.copy()
    np.subtract.at(rest, parent, values[1:])
    return rest


def _starts(own: Values, end: Indices) -> Values:
    """Give each node's left edge: what ended before it starts.

    That is the self of all nodes before it in preorder, less that of the ones above it, which stands to its right.
    """
    before = np.cumsum(own) - own
    steps = np.zeros(own.size + 1, np.int64)
    steps[:-1] = own
    np.subtract.at(steps, end, own)
    above: Values = np.cumsum(steps)[:-1] - own
    return before - above


def _with_trimmed(shown: Cut, folded: _Folded, threshold: int) -> Cut:
    """Put a trimmed child behind the last child of each node that hides enough to be seen."""
    under = np.flatnonzero((folded.value >= threshold) & (folded.frames > 0))
    count = shown.name.size
    # A trimmed child comes after its parent's last descendant; where several end there, the deepest first.
    where = np.concatenate([2 * np.arange(count) + 1, 2 * folded.end[under]])
    order = np.lexsort((np.concatenate([np.zeros(count, np.intp), -shown.depth[under]]), where))

    def joined(column: npt.NDArray[_Scalar], extra: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        both: npt.NDArray[_Scalar] = np.concatenate([column, extra])[order]
        return both

    right_edge = shown.start[under] + shown.total[under] - shown.own[under]
    return replace(
        shown,
        node=joined(shown.node, shown.node[under]),
        name=joined(shown.name, np.full(under.size, TRIMMED)),
        depth=joined(shown.depth, shown.depth[under] + 1),
        start=joined(shown.start, right_edge - folded.value[under]),
        own=joined(shown.own, np.zeros(under.size, np.int64)),
        total=joined(shown.total, folded.value[under]),
        identity=joined(shown.identity, shown.identity[under]),
        hidden=joined(shown.hidden, folded.frames[under]),
        matched=joined(shown.matched, folded.matched[under]),
    )
