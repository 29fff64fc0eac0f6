# SPDX-License-Identifier: Apache-2.0
"""Adds up the rows of a selection by key and replicate, where a graph adds them up by key alone.

A replicate is a host, or a stretch of time on one host when there are few hosts: parts of a side that could have come out differently.
Stretches are long and whole, because neighbouring windows are alike; of many hosts several make one replicate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.diff import U64
from server.query.chosen import Chosen
from server.query.merge import Keep, Mask, Meter, keep_all, kept_rows
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import Piece, ServiceDictionary, Store
from server.store.sums import add_by_group

MOST_REPLICATES = 32
FEWEST_REPLICATES = 8
MOST_CELLS = 2_000_000
"""Keys times replicates of one side: 16 MB. Of larger dictionaries there are fewer replicates, because adding to what is far beyond
the cache takes 5 times as long; 10 M rows onto 250,000 keys, ns a row: 1 replicate 2.5, 4 3.4, 8 6.9, 16 9.0, 32 10.2."""
_MINUTE_NS = 60 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Replication:
    """How a side is cut."""

    host_group: npt.NDArray[np.intp]
    """By series id."""
    host_groups: int
    stretches: int
    start_unix_ns: int
    stretch_ns: int

    @property
    def count(self) -> int:
        """Number of replicates."""
        return self.host_groups * self.stretches

    def first_of(self, piece: Piece) -> int:
        """Give the replicate of a piece's rows that are of host group 0."""
        at = (piece.start_unix_ns - self.start_unix_ns) // self.stretch_ns
        return min(max(at, 0), self.stretches - 1) * self.host_groups


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns of the rows to add up, and which rows."""

    width: str
    """What is added up by key."""
    count: str
    """Samples."""
    observed: str
    keep: Keep = keep_all


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a side, each added up by itself; one when it is not grouped."""

    count: int = 1
    """Each has fewer replicates when there are more."""
    meter: Meter = field(default_factory=Meter)
    """All of them together have the budget of a graph."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplicatedWeights:
    """Values of one service."""

    dictionary: ServiceDictionary
    values: U64
    """Shape (replicates, keys)."""
    keys: Indices | None = None
    """What the columns of `values` stand for; None for all keys in order."""

    def packed(self) -> "ReplicatedWeights":
        """Give the keys with a value alone."""
        keys: Indices = np.flatnonzero(self.values.any(axis=0))
        return ReplicatedWeights(self.dictionary, self.values[:, keys], keys if self.keys is None else self.keys[keys])


@dataclass(frozen=True, slots=True, eq=False)
class SideWeights:
    """Values of one side, by service. `start` and `end` are those of the windows that were there; both 0 when there were none."""

    services: Mapping[str, ReplicatedWeights]
    samples: int
    observed: int
    """Samples before any scaling."""
    start_unix_ns: int
    end_unix_ns: int
    hosts: frozenset[str]
    rows: int


def replication(store: Store, chosen: Chosen, span: TimeRange, groups: int = 1) -> Replication:
    """Cut a side, or one of so many groups of it, by hosts and, when these are few, by time."""
    services = sorted({series.service for series in chosen.series})
    keys = sum(store.dictionary(service).sizes[2] for service in services)
    most = min(MOST_REPLICATES // groups, MOST_CELLS // max(keys, 1))
    most = max(FEWEST_REPLICATES, most)
    hosts = {host: i for i, host in enumerate(sorted(chosen.hosts))}
    host_groups = max(1, min(len(hosts), most))
    by_series = np.zeros(max((series.series_id for series in chosen.series), default=0) + 1, np.intp)
    for series in chosen.series:
        by_series[series.series_id] = hosts[series.labels.get("host", "")] % host_groups
    start = max(span.from_unix_ns, min((series.first_unix_ns for series in chosen.series), default=0))
    end = min(span.until_unix_ns, max((series.last_unix_ns + _MINUTE_NS for series in chosen.series), default=0))
    stretches = max(1, most // host_groups)
    return Replication(by_series, host_groups, stretches, start, max(1, -(-(end - start) // stretches)))


def replicated_weights(store: Store, chosen: Chosen, span: TimeRange, wanted: Wanted, groups: Groups | None = None) -> SideWeights:
    """Values of `wanted.width` by key and replicate. What is `chosen` may be one of some groups.

    Raises LimitExceeded over the budget of a graph.
    """
    groups = groups or Groups()
    meter, rows_before = groups.meter, groups.meter.rows
    width, count, observed, keep = wanted.width, wanted.count, wanted.observed, wanted.keep
    cut = replication(store, chosen, span, groups.count)
    found: dict[str, ReplicatedWeights] = {}
    kept: dict[str, Mask | None] = {}
    start, end, samples, seen_observed = 0, 0, 0, 0
    read = replace(chosen, is_all=False).selection(span, tuple(dict.fromkeys((width, count, observed))))
    read = replace(read, longest_ns=cut.stretch_ns if cut.stretches > 1 else 0)
    seen = np.zeros(cut.host_group.size, np.bool_)
    for piece in store.select(read):
        meter.count(piece)
        if piece.service not in found:
            dictionary = store.dictionary(piece.service)
            found[piece.service] = ReplicatedWeights(dictionary, np.zeros((cut.count, dictionary.sizes[2]), np.uint64))
            kept[piece.service] = keep(dictionary)
        seen[_series_in(piece)] = True
        rows = kept_rows(piece, kept[piece.service])
        if width in rows.columns:
            _add(found[piece.service].values, cut, rows, width)
        samples += _sum(rows, count)
        seen_observed += _sum(rows, observed)
        start, end = min(start or piece.start_unix_ns, piece.start_unix_ns), max(end, piece.end_unix_ns)
    hosts = frozenset(series.labels.get("host", "") for series in chosen.series if seen[series.series_id])
    return SideWeights(dict(sorted(found.items())), samples, seen_observed, start, end, hosts, meter.rows - rows_before)


def _sum(piece: Piece, column: str) -> int:
    return int(piece.columns[column].sum(dtype=np.uint64)) if column in piece.columns else 0


def _series_in(piece: Piece) -> npt.NDArray[np.int64] | int:
    """Each series of a piece, at least once."""
    if piece.run_sizes is None or isinstance(piece.series, int):
        return piece.series
    found: npt.NDArray[np.int64] = piece.series[np.cumsum(piece.run_sizes) - 1]
    return found


def _add(values: U64, cut: Replication, piece: Piece, column: str) -> None:
    keys = values.shape[1]
    if isinstance(piece.series, int):
        replicate = cut.first_of(piece) + int(cut.host_group[piece.series])
        add_by_group(values[replicate], piece.keys, piece.columns[column])
        return
    if piece.run_sizes is not None:
        end = 0
        for size in piece.run_sizes.tolist():
            start, end = end, end + size
            replicate = cut.first_of(piece) + int(cut.host_group[piece.series[start]])
            add_by_group(values[replicate], piece.keys[start:end], piece.columns[column][start:end])
        return
    cells = ((cut.first_of(piece) + cut.host_group) * keys).take(piece.series)
    cells += piece.keys
    add_by_group(values.reshape(-1), cells, piece.columns[column])
