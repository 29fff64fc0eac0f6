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
from server.store.sums import MultipleSums, add_by_group

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
    found: dict[str, _Replicated] = {}
    start, end, samples, seen_observed = 0, 0, 0, 0
    read = replace(chosen, is_all=False).selection(span, tuple(dict.fromkeys((width, count, observed))))
    read = replace(read, longest_ns=cut.stretch_ns if cut.stretches > 1 else 0, is_compact=True)
    seen, ids = np.zeros(cut.host_group.size, np.bool_), np.array([series.series_id for series in chosen.series], np.intp)
    for piece in store.select(read):
        meter.count(piece)
        if piece.service not in found:
            dictionary = store.dictionary(piece.service)
            found[piece.service] = _Replicated(dictionary, keep(dictionary), cut)
        if not seen[ids].all():
            seen[_series_in(piece)] = True
        sums = found[piece.service].add(piece, wanted)
        samples += sums[0]
        seen_observed += sums[1]
        start, end = min(start or piece.start_unix_ns, piece.start_unix_ns), max(end, piece.end_unix_ns)
    hosts = frozenset(series.labels.get("host", "") for series in chosen.series if seen[series.series_id])
    services = {service: one.weights() for service, one in sorted(found.items())}
    return SideWeights(services, samples, seen_observed, start, end, hosts, meter.rows - rows_before)


class _Replicated:
    """Adds up one service."""

    def __init__(self, dictionary: ServiceDictionary, kept: Mask | None, cut: Replication) -> None:
        self._dictionary, self._kept, self._cut = dictionary, kept, cut
        self._values: U64 = np.zeros((cut.count, dictionary.sizes[2]), np.uint64)
        self._multiples = MultipleSums(self._values.reshape(-1))

    def add(self, piece: Piece, wanted: Wanted) -> tuple[int, int]:
        """Take rows into account; gives the sums of the columns `count` and `observed` over them."""
        rows = kept_rows(piece, self._kept)
        if not rows.keys.size:
            return 0, 0
        first = next(iter(rows.columns), "")
        sums = {name: int(values.sum(dtype=np.uint64)) for name, values in rows.columns.items() if name != wanted.width or name == first}
        sums |= {name: factor * sums[first] for name, factor in rows.multiples.items()}
        factor = 1 if wanted.width == first else rows.multiples.get(wanted.width, 0)
        if factor:
            self._multiples.add(self._cells(rows), rows.columns[first], factor, sums[first])
        elif wanted.width in rows.columns:
            add_by_group(self._values.reshape(-1), self._cells(rows), rows.columns[wanted.width])
        return sums.get(wanted.count, 0), sums.get(wanted.observed, 0)

    def _cells(self, piece: Piece) -> npt.NDArray[np.int64]:
        """Place of each row among all values."""
        starts: npt.NDArray[np.int64] = (self._cut.first_of(piece) + self._cut.host_group) * self._values.shape[1]
        if isinstance(piece.series, int):
            cells = np.full(piece.keys.size, starts[piece.series])
        elif piece.run_sizes is not None:
            cells = np.repeat(starts[_series_in(piece)], piece.run_sizes)
        else:
            cells = starts.take(piece.series)
        cells += piece.keys
        return cells

    def weights(self) -> ReplicatedWeights:
        """Give what was added up."""
        self._multiples.settle()
        return ReplicatedWeights(self._dictionary, self._values)


def _series_in(piece: Piece) -> npt.NDArray[np.int64] | int:
    """Each series of a piece, at least once."""
    if piece.run_sizes is None or isinstance(piece.series, int):
        return piece.series
    found: npt.NDArray[np.int64] = piece.series[np.cumsum(piece.run_sizes) - 1]
    return found
