# SPDX-License-Identifier: Apache-2.0
"""The table of a kind by object, class, thread, service, host or function: every column summed, with quantiles of its histograms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.query.complaint import QueryError, did_you_mean
from server.query.grouping import By, Grouped, folded, function_numbers, grouped
from server.query.histogram import histograms, plain_columns, quantiles_ns, stacked
from server.query.kinds import width_column
from server.query.merge import KeyWeights, key_weights, maxima_of
from server.query.profile_query import ProfileQuery
from server.query.quality import Losses, add_accounts
from server.query.row_filter import keep_of, text_of
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.store.protocol import ColumnInfo, ServiceDictionary

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]

MOST_ERRORS = 20
"""Errors told of one call."""
_CALLS_WITH_ERRORS = "syscall"


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """One histogram of each row."""

    counts: U64
    """Shape (rows, buckets)."""
    p50_ns: F64
    """nan where nothing was counted."""
    p99_ns: F64


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTable:
    """The first rows, and what all rows together have."""

    kind: str
    by: By
    range: TimeRange
    sort: str
    columns: tuple[ColumnInfo, ...]
    names: Sequence[str]
    values: Mapping[str, U64]
    histograms: Mapping[str, Buckets]
    errors: Mapping[str, Sequence[tuple[str, int]]]
    """By call: how often it failed with which error, the most frequent first."""
    totals: Mapping[str, int]
    """Of all rows, those that were cut off included."""
    rows_total: int
    covered_ns: int
    losses: Losses
    """Of the hosts of the selection."""


def object_table(query: ProfileQuery, selector: Selector, span: TimeRange, by: By, cut: tuple[str, int]) -> ObjectTable:
    """Give the rows with the largest `cut[0]` (a column; "" is the kind's own), at most `cut[1]`. Raises QueryError or LimitExceeded."""
    sort, limit = cut
    with query.place():
        chosen = query.choose(selector, span)
        kind = chosen.kind
        infos, parts = plain_columns(kind), histograms(kind)
        sort = _sort_column(infos, sort or (width_column(kind).name if any(c.name == "ns" for c in infos) else infos[0].name))
        found = grouped(query, selector, span, by)
        errors: dict[str, list[tuple[str, int]]] = {}
        if by is By.CALL and kind.name == _CALLS_WITH_ERRORS:
            found, errors = _calls(found, maxima_of(query.store, kind.name), infos[0].name)
    order = _order(found, sort)[:limit]
    shown = {name: values[order] for name, values in found.columns.items()}
    none = np.zeros(order.size, np.uint64)
    names = [found.names[n] for n in order.tolist()]
    maxima = maxima_of(query.store, kind.name)
    return ObjectTable(
        kind=kind.name,
        by=by,
        range=span,
        sort=sort,
        columns=tuple(infos),
        names=names,
        values={info.name: shown.get(info.name, none) for info in infos},
        histograms={name: _buckets(shown, columns, order.size, name) for name, columns in parts.items()},
        errors={name: errors[name] for name in names if name in errors},
        totals={info.name: _total(found, info.name, maxima) for info in infos},
        rows_total=len(found.names),
        covered_ns=found.end_unix_ns - found.start_unix_ns,
        losses=add_accounts(query.store.accounts(kind.name, span.from_unix_ns, span.until_unix_ns), chosen.hosts),
    )


Functions = Mapping[str, Sequence[tuple[str, float]]]
"""By object: functions with their shares of its value, the largest first; "" stands for none known."""


def functions_by_object(query: ProfileQuery, selector: Selector, span: TimeRange) -> dict[By, Functions]:
    """Give, by FIRST and SECOND, the functions that these stacks of each object stand for."""
    chosen = query.choose(selector, span)
    column = width_column(chosen.kind).name
    with query.place():
        weights = key_weights(query.store, chosen.selection(span), (column,), keep=keep_of(selector))
        return {by: _functions(query, weights, column, by) for by in (By.FIRST, By.SECOND)}


def _functions(query: ProfileQuery, weights: KeyWeights, column: str, by: By) -> Functions:
    pairs: dict[str, dict[str, float]] = {}
    for service in weights.services.values():
        for name, function, value in _pairs(query, service.dictionary, service.columns[column], by):
            of_object = pairs.setdefault(name, {})
            of_object[function] = of_object.get(function, 0.0) + value
    return {name: _shares(functions) for name, functions in pairs.items()}


def _pairs(query: ProfileQuery, dictionary: ServiceDictionary, values: F64, by: By) -> list[tuple[str, str, float]]:
    """Give the value of each pair of an object and a function; without one the function is ""."""
    keys = np.flatnonzero(values)
    numbers, names = function_numbers(query, dictionary, by)
    pair = dictionary.key_objects[keys].astype(np.int64) << 32 | numbers[keys]
    distinct, place = np.unique(pair, return_inverse=True)
    sums = np.bincount(place, values[keys], distinct.size)
    return [
        (text_of(dictionary.strings[code >> 32]), names[code & 0xFFFFFFFF], value)
        for code, value in zip(distinct.tolist(), sums.tolist(), strict=True)
    ]


def _shares(functions: Mapping[str, float]) -> list[tuple[str, float]]:
    total = sum(functions.values())
    ordered = sorted(functions.items(), key=lambda one: (-one[1], one[0]))
    return [(name, value / total) for name, value in ordered]


def _calls(found: Grouped, maxima: frozenset[str], count: str) -> tuple[Grouped, dict[str, list[tuple[str, int]]]]:
    """Fold `openat` and `openat:ENOENT` into one row, and tell the errors apart beside it."""
    parts = [name.partition(":") for name in found.names]
    errors: dict[str, list[tuple[str, int]]] = {}
    counts = found.columns.get(count, np.zeros(len(parts), np.uint64)).tolist()
    for (call, _, error), times in zip(parts, counts, strict=True):
        if error and times:
            errors.setdefault(call, []).append((error, times))
    ordered = {call: sorted(some, key=lambda one: (-one[1], one[0]))[:MOST_ERRORS] for call, some in errors.items()}
    return folded(found, [call for call, _, _ in parts], maxima), ordered


def _sort_column(infos: Sequence[ColumnInfo], name: str) -> str:
    names = [info.name for info in infos]
    if name not in names:
        raise QueryError(f"there is no column {name[:60]!r} to sort by", hint=did_you_mean(name[:60], names))
    return name


def _order(found: Grouped, sort: str) -> npt.NDArray[np.intp]:
    """Largest first, equal ones by name."""
    by_name = np.argsort(np.array(found.names, object), kind="stable") if found.names else np.zeros(0, np.intp)
    values = found.columns.get(sort, np.zeros(len(found.names), np.uint64)).astype(np.float64)
    order: npt.NDArray[np.intp] = by_name[np.argsort(-values[by_name], kind="stable")]
    return order


def _buckets(shown: Mapping[str, U64], columns: Sequence[str], rows: int, name: str) -> Buckets:
    counts = stacked(shown, columns, rows)
    most = shown.get("max_ns" if name == "bucket" else f"{name}_max_ns")
    largest = most.astype(np.float64) if most is not None else None
    return Buckets(counts, quantiles_ns(counts, 0.5, largest), quantiles_ns(counts, 0.99, largest))


def _total(found: Grouped, name: str, maxima: frozenset[str]) -> int:
    values = found.columns.get(name)
    if values is None or not values.size:
        return 0
    return int(values.max()) if name in maxima else sum(values.tolist())
