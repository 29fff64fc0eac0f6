# SPDX-License-Identifier: Apache-2.0
"""Histograms over log2 buckets of microseconds: which columns hold one, and quantiles of it.

Bucket 0 holds what is under 1 us, bucket i what is in [2^(i-1), 2^i) us, the last one all that is longer.
"""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from server.query.complaint import QueryError, did_you_mean
from server.store.protocol import ColumnInfo, KindInfo
from server.store.push import ValueMerge

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]

BUCKETS = 32
_NAME = re.compile(r"(.+)_(\d\d)", re.ASCII)
_FIRST_NS = 1000.0


def histograms(kind: KindInfo) -> dict[str, list[str]]:
    """Give the histograms of a kind: by name (`bucket`, `rtt`) the columns of all its buckets, shortest first.

    A bucket that has always been empty was never sent, and the kind has no column for it: it is named all the same.
    """
    matches = (_NAME.fullmatch(column.name) for column in kind.columns if column.merge is ValueMerge.HISTOGRAM)
    names = dict.fromkeys(match.group(1) for match in matches if match)
    return {name: [f"{name}_{bucket:02}" for bucket in range(BUCKETS)] for name in names}


def histogram(kind: KindInfo, name: str) -> list[str]:
    """Give the columns of one histogram; the kind's first when `name` is empty. Raises QueryError when there is none."""
    found = histograms(kind)
    if not found:
        raise QueryError(f"kind {kind.name} has no histogram")
    chosen = name or next(iter(found))
    if chosen not in found:
        raise QueryError(f"kind {kind.name} has no histogram {name[:60]!r}", hint=did_you_mean(name[:60], found))
    return found[chosen]


def plain_columns(kind: KindInfo) -> list[ColumnInfo]:
    """Give the columns that are no bucket."""
    buckets = {name for names in histograms(kind).values() for name in names}
    return [column for column in kind.columns if column.name not in buckets]


def stacked(columns: Mapping[str, U64], names: Iterable[str], rows: int) -> U64:
    """Lay the bucket columns side by side, shape (rows, buckets); absent ones count 0."""
    none = np.zeros(rows, np.uint64)
    return np.stack([columns.get(name, none) for name in names], axis=1)


def edges_ns(buckets: int) -> F64:
    """Give the upper edge of each bucket; that of the last one is infinite."""
    edges = _FIRST_NS * np.exp2(np.arange(buckets))
    edges[-1] = np.inf
    return edges


def quantiles_ns(counts: U64, share: float, most_ns: F64 | None = None) -> F64:
    """Give the value below which `share` of each row's events lie, even within a bucket; nan for rows without events.

    `counts` has shape (rows, buckets). No value is above `most_ns`, the largest seen in each row; without it what lies in the last
    bucket counts as its lower edge.
    """
    rows, buckets = counts.shape
    upper = edges_ns(buckets)
    lower = np.concatenate([[0.0], upper[:-1]])
    running = np.cumsum(counts.astype(np.float64), axis=1)
    total = running[:, -1] if buckets else np.zeros(rows)
    wanted = np.maximum(total * share, np.minimum(1.0, total))
    at = np.minimum((running < wanted[:, None]).sum(axis=1), buckets - 1)
    row = np.arange(rows)
    inside = counts[row, at].astype(np.float64)
    before = running[row, at] - inside
    width = np.where(np.isfinite(upper[at]), upper[at] - lower[at], 0.0)
    value = lower[at] + width * np.divide(wanted - before, inside, out=np.zeros(rows), where=inside > 0)
    if most_ns is not None:
        value = np.where(at == buckets - 1, np.maximum(value, most_ns), value)
        value = np.where(most_ns > 0, np.minimum(value, most_ns), value)
    return np.where(total > 0, value, np.nan)
