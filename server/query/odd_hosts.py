# SPDX-License-Identifier: Apache-2.0
"""Odd hosts: how far each host's profile is from the median of its service, and which functions make the distance.

A profile is the share of each function by self. The distance is half the sum of the differences from the median over hosts: the part of
its time that a host spends elsewhere. Counting alone makes some distance, the more the fewer samples; what is beyond it ranks the hosts.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.errors import LimitExceeded
from server.profile.calltree import Indices
from server.profile.noise import F64
from server.query.chosen import Chosen
from server.query.complaint import QueryError
from server.query.kinds import width_column
from server.query.merge import Meter
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.store.protocol import ColumnInfo, Piece, Selection
from server.store.sums import add_by_group

FEWEST_HOSTS = 3
"""Of two, nobody can say which one is odd."""
MOST_CELLS = 50_000_000
"""Hosts times functions."""
FUNCTIONS_SHOWN = 3
LEAST_EXCESS = 0.02
"""Of its time that an odd host spends elsewhere, beyond noise."""
_SPREADS = 4.0
"""An odd host is so many spreads of the others away from them."""
_TIMES_EXPECTED = 2.5
"""With few samples and functions the distance that counting makes is itself uncertain."""
_MAD_OF_NORMAL = 1.4826


@dataclass(frozen=True, slots=True)
class Difference:
    """A function that a host runs more or less than the others."""

    name: str
    binary: str
    code: int
    share: float
    median: float


@dataclass(frozen=True, slots=True)
class HostDistance:
    """One host."""

    host: str
    value: int
    """Of the kind's width column."""
    distance: float
    """0 (as the median) to 1 (nothing in common)."""
    expected: float
    """Distance that counting alone makes."""
    is_odd: bool
    functions: list[Difference]
    """The largest differences."""


@dataclass(frozen=True, slots=True)
class OddHosts:
    """All hosts of a service, the oddest first."""

    service: str
    column: ColumnInfo
    range: TimeRange
    hosts: list[HostDistance]
    is_comparable: bool
    """There are hosts enough for a median."""


def odd_hosts(query: ProfileQuery, selector: Selector, span: TimeRange) -> OddHosts:
    """Rank the hosts of one service. Raises QueryError when the selector means several."""
    with query.place():
        chosen = query.choose(selector, span)
        services = sorted({series.service for series in chosen.series})
        if len(services) > 1 or selector.of_rows:
            hint = 'write cpu{service="..."}'
            raise QueryError("hosts are compared within one service, by whole profiles", hint=hint, text=selector.text)
        column = width_column(chosen.kind)
        if not services:
            return OddHosts("", column, span, [], is_comparable=False)
        counts = _count(query, chosen, services[0], (span, column.name))
        return OddHosts(services[0], column, span, _ranked(counts), is_comparable=counts.values.shape[0] >= FEWEST_HOSTS)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Values by host and function; rows without a value are left out."""

    hosts: list[str]
    values: F64
    observed: F64
    """Samples by host."""
    names: list[tuple[str, str, int]]
    """Name, binary and code by column."""


def _count(query: ProfileQuery, chosen: Chosen, service: str, wanted: tuple[TimeRange, str]) -> _Counts:
    span, column = wanted
    dictionary = query.store.dictionary(service)
    tree = query.trees.tree(dictionary)
    leaves, functions = np.unique(tree.tree.name[tree.nodes[dictionary.key_stacks]], return_inverse=True)
    hosts = sorted(chosen.hosts)
    if len(hosts) * leaves.size > MOST_CELLS:
        raise LimitExceeded(f"{len(hosts)} hosts with {leaves.size} functions are more than {MOST_CELLS:,} values: ask for fewer hosts")
    host_of = np.zeros(max(series.series_id for series in chosen.series) + 1, np.intp)
    for series in chosen.series:
        host_of[series.series_id] = hosts.index(series.labels.get("host", ""))
    count = chosen.kind.columns[0].name
    sums, samples = np.zeros(len(hosts) * leaves.size, np.uint64), np.zeros(len(hosts), np.uint64)
    ids, meter = frozenset(series.series_id for series in chosen.series), Meter()
    columns = tuple(dict.fromkeys((column, count)))
    for piece in query.store.select(Selection(chosen.kind.name, span.from_unix_ns, span.until_unix_ns, ids, columns)):
        meter.count(piece)
        of_row = _by_row(piece, host_of)
        if column in piece.columns:
            add_by_group(sums, of_row * leaves.size + functions[piece.keys], piece.columns[column])
        if count in piece.columns:
            add_by_group(samples, of_row, piece.columns[count])
    table, has_data = tree.tree.table, samples > 0
    values = sums.reshape(len(hosts), leaves.size)[has_data].astype(np.float64)
    names = [(table.names[n], table.binaries[n], table.codes[n]) for n in leaves.tolist()]
    some = [host for host, has in zip(hosts, has_data.tolist(), strict=True) if has]
    return _Counts(some, values, samples[has_data].astype(np.float64), names)


def _by_row(piece: Piece, host_of: Indices) -> Indices:
    if isinstance(piece.series, int):
        return np.full(piece.keys.size, host_of[piece.series])
    found: Indices = host_of[piece.series]
    return found


def _ranked(counts: _Counts) -> list[HostDistance]:
    whole = counts.values.sum(axis=1, keepdims=True)
    profiles = counts.values / np.maximum(whole, 1.0)
    median = np.median(profiles, axis=0) if len(counts.hosts) else np.zeros(len(counts.names))
    differences = profiles - median
    distance = 0.5 * np.abs(differences).sum(axis=1)
    # The mean size of a binomial's deviation is sqrt(2 p (1 - p) / (pi n)).
    expected = 0.5 * np.sqrt(2 / np.pi * np.maximum(median * (1 - median), 0)).sum() / np.sqrt(np.maximum(counts.observed, 1.0))
    is_odd = _odd(distance - expected) & (distance >= _TIMES_EXPECTED * expected)
    return [
        HostDistance(
            host=counts.hosts[at],
            value=int(whole[at, 0]),
            distance=float(distance[at]),
            expected=float(expected[at]),
            is_odd=bool(is_odd[at]),
            functions=_largest(counts, (profiles[at], median)),
        )
        for at in np.argsort(expected - distance, kind="stable").tolist()
    ]


def _odd(excess: F64) -> npt.NDArray[np.bool_]:
    """Tell who is far from the others, and far enough to matter."""
    if excess.size < FEWEST_HOSTS:
        return np.zeros(excess.size, np.bool_)
    middle = float(np.median(excess))
    spread = _MAD_OF_NORMAL * float(np.median(np.abs(excess - middle)))
    odd: npt.NDArray[np.bool_] = (excess >= LEAST_EXCESS) & (excess > middle + _SPREADS * spread)
    return odd


def _largest(counts: _Counts, shares: tuple[F64, F64]) -> list[Difference]:
    profile, median = shares
    size = np.round(np.abs(profile - median), 9)
    order = np.argsort(-size, kind="stable")[:FUNCTIONS_SHOWN].tolist()
    found = []
    for at in (at for at in order if size[at]):
        name, binary, code = counts.names[at]
        found.append(Difference(name, binary, code, float(profile[at]), float(median[at])))
    return found
