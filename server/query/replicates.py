# SPDX-License-Identifier: Apache-2.0
"""Adds up the rows of a selection by key and replicate, where a graph adds them up by key alone.

A replicate is a host, or a stretch of time on one host when there are few hosts: parts of a side that could have come out differently.
Stretches are long and whole, because neighbouring windows are alike; of many hosts several make one replicate.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from server.profile.diff import U64
from server.query.merge import MergeBudget, Meter
from server.query.profile_query import Chosen
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import Piece, ServiceDictionary, Store
from server.store.sums import add_by_group

MOST_REPLICATES = 32
MOST_CELLS = 16_000_000
"""Keys times replicates of one side: 128 MB. Of larger dictionaries there are fewer replicates."""
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


@dataclass(frozen=True, slots=True, eq=False)
class ReplicatedWeights:
    """Values of one service."""

    dictionary: ServiceDictionary
    values: U64
    """Shape (replicates, keys)."""
    observed: U64
    """By key."""


@dataclass(frozen=True, slots=True, eq=False)
class SideWeights:
    """Values of one side, by service. `start` and `end` are those of the windows that were there; both 0 when there were none."""

    services: Mapping[str, ReplicatedWeights]
    samples: int
    start_unix_ns: int
    end_unix_ns: int
    hosts: int
    rows: int


def replication(store: Store, chosen: Chosen, span: TimeRange) -> Replication:
    """Cut a side by hosts and, when these are few, by time. Store.dictionary is asked for nothing but its size."""
    services = sorted({series.service for series in chosen.series})
    keys = sum(store.dictionary(service).sizes[2] for service in services)
    most = max(1, min(MOST_REPLICATES, MOST_CELLS // max(keys, 1)))
    hosts = {host: i for i, host in enumerate(sorted(chosen.hosts))}
    groups = max(1, min(len(hosts), most))
    by_series = np.zeros(max((series.series_id for series in chosen.series), default=0) + 1, np.intp)
    for series in chosen.series:
        by_series[series.series_id] = hosts[series.labels.get("host", "")] % groups
    start = max(span.from_unix_ns, min((series.first_unix_ns for series in chosen.series), default=0))
    end = min(span.until_unix_ns, max((series.last_unix_ns + _MINUTE_NS for series in chosen.series), default=0))
    stretches = max(1, most // groups)
    return Replication(by_series, groups, stretches, start, max(1, -(-(end - start) // stretches)))


def replicated_weights(store: Store, chosen: Chosen, span: TimeRange, columns: Sequence[str]) -> SideWeights:
    """Values of the first of `columns` by key and replicate; the second counts samples, the last what was observed.

    Raises LimitExceeded over the budget of a graph.
    """
    width, count, observed = columns
    cut, meter = replication(store, chosen, span), Meter(MergeBudget(), time.monotonic)
    found: dict[str, ReplicatedWeights] = {}
    start, end, samples = 0, 0, 0
    hosts = np.zeros(cut.host_group.size, np.bool_)
    for piece in store.select(replace(chosen, is_all=False).selection(span, tuple(dict.fromkeys(columns)))):
        meter.count(piece)
        if piece.service not in found:
            dictionary = store.dictionary(piece.service)
            keys = dictionary.sizes[2]
            found[piece.service] = ReplicatedWeights(dictionary, np.zeros((cut.count, keys), np.uint64), np.zeros(keys, np.uint64))
        weights = found[piece.service]
        replicates = cut.first_of(piece) + cut.host_group[piece.series]
        hosts[piece.series] = True
        if width in piece.columns:
            add_by_group(weights.values.reshape(-1), replicates * weights.observed.size + piece.keys, piece.columns[width])
        if observed in piece.columns:
            add_by_group(weights.observed, piece.keys, piece.columns[observed])
        samples += int(piece.columns[count].sum(dtype=np.uint64)) if count in piece.columns else 0
        start, end = min(start or piece.start_unix_ns, piece.start_unix_ns), max(end, piece.end_unix_ns)
    seen = {series.labels.get("host", "") for series in chosen.series if hosts[series.series_id]}
    return SideWeights(dict(sorted(found.items())), samples, start, end, len(seen), meter.rows)
