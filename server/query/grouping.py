# SPDX-License-Identifier: Apache-2.0
"""Adds up rows by a name: an object, a class, a thread, a service, a host, or the function that waited, woke or held.

Each key has the number of its group, so that a row costs one addition for each column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.query.callers import own_frames
from server.query.chosen import Chosen
from server.query.merge import Mask, Meter, kept_rows, maxima_of
from server.query.profile_query import ProfileQuery
from server.query.row_filter import keep_of, label_numbers, text_of, used_numbers
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.store.protocol import Piece, ServiceDictionary
from server.store.sums import add_by_group, raise_by_group

U64 = npt.NDArray[np.uint64]
NOBODY = ""
"""Name of the rows that have none: no object, no second stack."""


class By(StrEnum):
    """What rows are added up by."""

    CALL = "call"
    """As object, but system calls with their errors as one."""
    OBJECT = "object"
    CLASS = "class"
    THREAD = "thread"
    SERVICE = "service"
    HOST = "host"
    FIRST = "first"
    """The function that the row's stack stands for (server.query.callers)."""
    SECOND = "second"
    """The same of the second stack: who woke, who held."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sums by group; arrays have an element for each name. `start` and `end` are of the windows there were, 0 when none."""

    names: Sequence[str]
    columns: dict[str, U64]
    """Sums, or the largest where the column merges by max; columns that no window had are absent."""
    start_unix_ns: int = 0
    end_unix_ns: int = 0
    rows: int = 0


@dataclass(slots=True)
class _Sums:
    """What is added up so far."""

    maxima: frozenset[str]
    numbers: dict[str, int] = field(default_factory=dict)
    columns: dict[str, U64] = field(default_factory=dict)
    seen: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def add(self, groups: Indices, columns: Mapping[str, npt.NDArray[np.unsignedinteger]]) -> None:
        size = len(self.numbers)
        self.seen = _grown_mask(self.seen, size)
        self.seen[groups] = True
        for name, values in columns.items():
            totals = self.columns[name] = _grown(self.columns.get(name, np.zeros(0, np.uint64)), size)
            (raise_by_group if name in self.maxima else add_by_group)(totals, groups, values)


def grouped(query: ProfileQuery, selector: Selector, span: TimeRange, by: By, columns: tuple[str, ...] | None = None) -> Grouped:
    """Add up `columns` (default: all) of a selector's rows. Raises QueryError or LimitExceeded."""
    chosen = query.choose(selector, span)
    keep, sums, meter = keep_of(selector), _Sums(maxima_of(query.store, chosen.kind.name)), Meter()
    groups_of, kept_of = dict[str, Indices](), dict[str, Mask | None]()
    hosts = _host_numbers(chosen, sums) if by is By.HOST else None
    start, end = 0, 0
    for piece in query.store.select(chosen.selection(span, columns)):
        meter.count(piece)
        if piece.service not in groups_of:
            dictionary = query.store.dictionary(piece.service)
            kept_of[piece.service] = keep(dictionary)
            groups_of[piece.service] = _key_groups(query, dictionary, by, sums)
        rows = kept_rows(piece, kept_of[piece.service])
        sums.add(groups_of[piece.service][rows.keys] if hosts is None else _spread(hosts[rows.series], rows), rows.columns)
        start, end = min(start or piece.start_unix_ns, piece.start_unix_ns), max(end, piece.end_unix_ns)
    return _answer(sums, start, end, meter.rows)


def folded(grouped_rows: Grouped, names: Sequence[str], maxima: frozenset[str]) -> Grouped:
    """Add up groups once more, each under the name given for it, in the order of their first."""
    sums = _Sums(maxima)
    groups = np.array([sums.number(name) for name in names], np.intp)
    sums.add(groups, grouped_rows.columns)
    return Grouped(list(sums.numbers), sums.columns, grouped_rows.start_unix_ns, grouped_rows.end_unix_ns, grouped_rows.rows)


def function_numbers(query: ProfileQuery, dictionary: ServiceDictionary, by: By) -> tuple[Indices, Sequence[str]]:
    """Give, for each key, the number of the function its first or second stack stands for, and the names of the numbers."""
    tree = query.trees.tree(dictionary)
    nodes = tree.nodes[dictionary.key_stacks if by is By.FIRST else dictionary.key_seconds]
    numbers: Indices = tree.tree.name[own_frames(tree.tree, nodes)]
    return numbers, tree.tree.table.names


def _answer(sums: _Sums, start: int, end: int, rows: int) -> Grouped:
    names, seen = list(sums.numbers), np.flatnonzero(_grown_mask(sums.seen, len(sums.numbers)))
    columns = {name: _grown(values, len(names))[seen] for name, values in sums.columns.items()}
    return Grouped([names[n] for n in seen.tolist()], columns, start, end, rows)


def _key_groups(query: ProfileQuery, dictionary: ServiceDictionary, by: By, sums: _Sums) -> Indices:
    """Give the group of each key; groups of hosts come from series instead."""
    keys = dictionary.sizes[2]
    if by in (By.SERVICE, By.HOST):
        return np.full(keys, sums.number(dictionary.service) if by is By.SERVICE else 0, np.intp)
    if by in (By.FIRST, By.SECOND):
        numbers, names = function_numbers(query, dictionary, by)
        used = np.unique(numbers).tolist()
        texts = [names[n] for n in used]
    else:
        label = "object" if by is By.CALL else str(by)
        numbers = label_numbers(dictionary, label).astype(np.intp)
        used = used_numbers(label_numbers(dictionary, label), len(dictionary.strings))
        texts = [text_of(dictionary.strings[n]) for n in used]
    group_of = np.zeros(max(used, default=0) + 1, np.intp)
    group_of[used] = [sums.number(text) for text in texts]
    groups: Indices = group_of[numbers]
    return groups


def _host_numbers(chosen: Chosen, sums: _Sums) -> Indices:
    """Give the group of each series id."""
    by_series = np.zeros(max((series.series_id for series in chosen.series), default=0) + 1, np.intp)
    for series in chosen.series:
        by_series[series.series_id] = sums.number(series.labels.get("host", NOBODY))
    return by_series


def _spread(groups: Indices | np.intp, piece: Piece) -> Indices:
    return np.broadcast_to(np.asarray(groups, np.intp), piece.keys.shape)


def _grown(values: U64, size: int) -> U64:
    return values if values.size >= size else np.concatenate([values, np.zeros(size - values.size, np.uint64)])


def _grown_mask(values: Mask, size: int) -> Mask:
    return values if values.size >= size else np.concatenate([values, np.zeros(size - values.size, np.bool_)])
