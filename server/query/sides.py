# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: what each asked for, added up by replicate, and both laid on one tree of names.

A level above the frames is made of labels of rows (one thread, one part of the tree) or of series (one host, one part, which is then a
stratum with replicates of its own: see server.profile.diff). Both sides have the same groups.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from server.profile.calltree import Indices
from server.profile.diff import Side
from server.profile.nametree import NameTree
from server.profile.reshape import DROPPED
from server.profile.totals import Mask
from server.profile.union import Part, union
from server.query.branches import row_groups
from server.query.chosen import By, Chosen, split_alike
from server.query.operators import Operators
from server.query.profile_query import ProfileQuery, Question, check_group
from server.query.quality import share
from server.query.replicates import Groups, ReplicatedWeights, SideWeights, Wanted, replicated_weights
from server.query.trees import ServiceTree

EMPTY_SIDE = Side(np.zeros(0, np.intp), np.zeros((1, 0), np.uint64), 0)


@dataclass(frozen=True, slots=True)
class ReadSide:
    """One side, added up."""

    question: Question
    chosen: Chosen
    parts: Sequence[tuple[str, SideWeights]]
    """By value of the label of series that the question is grouped by; one with "" when it is not."""

    @property
    def samples(self) -> int:
        """Sum of the kind's first column."""
        return sum(weights.samples for _, weights in self.parts)

    @property
    def observed(self) -> int:
        """Samples before any scaling."""
        return sum(weights.observed for _, weights in self.parts)

    @property
    def covered_ns(self) -> int:
        """From the start of the first window to the end of the last one."""
        some = [weights for _, weights in self.parts if weights.end_unix_ns]
        return max((one.end_unix_ns for one in some), default=0) - min((one.start_unix_ns for one in some), default=0)

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that had rows."""
        return frozenset().union(*(weights.hosts for _, weights in self.parts))

    @property
    def rows(self) -> int:
        """Rows looked at."""
        return sum(weights.rows for _, weights in self.parts)


def read_sides(query: ProfileQuery, sides: Sequence[tuple[Question, Chosen]], wanted: Sequence[Wanted]) -> list[ReadSide]:
    """Add up all sides, by the group of the first. Raises QueryError for a label that no side has, or LimitExceeded."""
    (question, _), store = sides[0], query.store
    if not question.series_group:
        return [
            ReadSide(asked, chosen, [("", replicated_weights(store, chosen, asked.range, how))])
            for (asked, chosen), how in zip(sides, wanted, strict=True)
        ]
    check_group(question, [series for _, chosen in sides for series in chosen.series])
    spans = [(chosen, asked.range) for asked, chosen in sides]
    groups = list(split_alike(store, spans, By(question.series_group, wanted[0].width)))
    found = []
    for at, ((asked, chosen), how) in enumerate(zip(sides, wanted, strict=True)):
        together = Groups(len(groups))
        parts = [
            (name, _packed(replicated_weights(store, members[at], asked.range, how, together)))
            for name, members in groups
            if members[at].series
        ]
        found.append(ReadSide(asked, chosen, parts))
    return found


def _packed(weights: SideWeights) -> SideWeights:
    """A group has few of all keys: many groups are then no larger than one side."""
    return replace(weights, services={name: one.packed() for name, one in weights.services.items()})


Laid = tuple[NameTree, tuple[Side, Side], Callable[[], Mask] | None]


def laid(query: ProfileQuery, sides: Sequence[ReadSide], asked: Question) -> Laid:
    """Lay both sides on one tree; a service's own, kept tree serves when it is the only one and nothing stands above it.

    The last of the answer knows that tree's first calls (server.profile.top).
    """
    trees: dict[str, ServiceTree] = {}
    for read in sides:
        for _, part in read.parts:
            for name, weights in part.services.items():
                size = weights.dictionary.sizes[1]
                if name not in trees or trees[name].nodes.size < size:
                    trees[name] = query.trees.tree(weights.dictionary, is_by_line=asked.operators.is_by_line)
    if len(trees) == 1 and not asked.group:
        ((name, tree),) = trees.items()
        found = [_own_side(read.parts[0][1].services.get(name), tree, read.observed) for read in sides]
        return tree.tree, (found[0], found[1]), lambda: tree.first_calls
    stacks = [_Stacks(read, trees, asked) for read in sides]
    joined, places = union([part for some in stacks for part in some.parts])
    split = len(stacks[0].parts)
    return joined, (stacks[0].side(places[:split]), stacks[1].side(places[split:])), None


def _own_side(weights: ReplicatedWeights | None, tree: ServiceTree, observed: int) -> Side:
    if weights is None:
        return EMPTY_SIDE
    return Side(tree.nodes[weights.dictionary.key_stacks], weights.values, observed)


class _Stacks:
    """The stacks of a side as parts of a tree to be: one a service, or one a service and value of the label it is grouped by."""

    def __init__(self, read: ReadSide, trees: Mapping[str, ServiceTree], asked: Question) -> None:
        self.parts: list[Part] = []
        self._observed = read.observed
        self._columns: list[tuple[ReplicatedWeights, Indices]] = []
        self._strata: list[int] | None = [] if asked.series_group else None
        for stratum, (value, part) in enumerate(read.parts):
            for service, weights in part.services.items():
                packed = weights if weights.keys is not None else weights.packed()
                for name, columns in _groups(packed, asked.row_group, value or None):
                    self._add(trees[service], packed, columns, name)
                    if self._strata is not None:
                        self._strata.append(stratum)

    def _add(self, tree: ServiceTree, weights: ReplicatedWeights, columns: Indices, name: str | None) -> None:
        assert weights.keys is not None
        self.parts.append(Part(tree.tree, tree.nodes[weights.dictionary.key_stacks[weights.keys[columns]]], name))
        self._columns.append((weights, columns))

    def side(self, places: list[Indices]) -> Side:
        """Give the side, when the parts have their places in the tree."""
        if not self._columns:
            return EMPTY_SIDE
        rows = max(weights.values.shape[0] for weights, _ in self._columns)
        values = [_with_rows(weights, columns, rows) for weights, columns in self._columns]
        sizes = [columns.size for _, columns in self._columns]
        strata = None if self._strata is None else np.repeat(np.array(self._strata, np.intp), sizes)
        return Side(np.concatenate(places), np.concatenate(values, axis=1), self._observed, strata)


def _with_rows(weights: ReplicatedWeights, columns: Indices, rows: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    """Give columns of values, with rows of nothing where a group has fewer replicates than another."""
    values = weights.values[:, columns]
    lacking = rows - values.shape[0]
    return np.pad(values, ((0, lacking), (0, 0))) if lacking else values


def _groups(weights: ReplicatedWeights, label: str, value: str | None) -> Iterable[tuple[str | None, Indices]]:
    """Give columns with the name of the level above them, None for none."""
    assert weights.keys is not None
    if not label:
        return [(value, np.arange(weights.keys.size))]
    return row_groups(weights.dictionary, weights.keys, label)


def reshaped_sides(tree: NameTree, operators: Operators, *sides: Side) -> tuple[NameTree, Side, Side]:
    """Apply operators to both sides of a comparison alike."""
    used = np.zeros(len(tree), np.bool_)
    for side in sides:
        used[side.nodes] = True
    reshaped = operators.apply(tree, used)
    a, b = (_placed(side, reshaped.place[side.nodes]) for side in sides)
    return reshaped.tree, a, b


def _placed(side: Side, place: Indices) -> Side:
    """Give the stacks of a side that are left; of what was observed they have the part that they have of its values."""
    kept = place != DROPPED
    if kept.all():
        return replace(side, nodes=place)
    values, whole = side.values[:, kept], int(side.values.sum())
    strata = side.strata[kept] if side.strata is not None else None
    return Side(place[kept], values, round(side.observed * share(int(values.sum()), whole)), strata)
