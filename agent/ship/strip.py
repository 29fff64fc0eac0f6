# SPDX-License-Identifier: Apache-2.0
"""Replaces row keys that the server has numbered by their numbers, and drops the frames that nobody needs then.

before   series: keys A B C D        values 7 3 2 5      (B and D are known as 40 and 12)
after    series: known 12 40, keys A C   values 5 3 7 2
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agent.records.folded import Index, Rows, Values, folded_from_message, message_from_folded, pruned
from agent.ship.key_hash import KeyHasher
from agent.ship.known import UNKNOWN, KeyHashes, KnownKeys
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class StrippedSeries:
    """Which keys the rows of one sent series stand for."""

    known_numbers: Index
    """As sent: ascending. Beside it, in known_hashes, the hash of each; a number comes twice when two hashes have it."""
    known_hashes: KeyHashes
    new_hashes: KeyHashes
    """In the order of the new keys."""


@dataclass(frozen=True, slots=True)
class Stripped:
    """A batch as it goes on the wire, and what its answer will refer to."""

    batch: pb.FoldedBatch
    series: tuple[StrippedSeries, ...]
    known_count: int
    """Rows that go as numbers; when 0, `batch` is the whole batch."""
    new_count: int
    """Rows that go with their frames."""


def stripped(batch: pb.FoldedBatch, hasher: KeyHasher, known: KnownKeys) -> Stripped:
    """Strip a whole batch. Series keep their places, so that answers refer to them."""
    folded = folded_from_message(batch)
    hashes = hasher.hashes(folded)
    numbers = known.numbers(KeyHashes(np.concatenate([one.lanes for one in hashes], axis=1))) if hashes else np.zeros(0, np.int64)
    bounds = np.cumsum([0, *(len(one) for one in hashes)]).tolist()
    kept: list[Rows] = []
    series: list[StrippedSeries] = []
    for index, (rows, of_rows) in enumerate(zip(folded.series, hashes, strict=True)):
        of_series = numbers[bounds[index] : bounds[index + 1]]
        is_known = of_series != UNKNOWN
        known_rows, new_rows = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        known_rows = known_rows[np.argsort(of_series[known_rows], kind="stable")]
        kept.append(_numbered(rows, of_series, known_rows, new_rows))
        series.append(StrippedSeries(of_series[known_rows], of_rows.take(known_rows), of_rows.take(new_rows)))
    known_count = sum(len(one.known_numbers) for one in series)
    new_count = len(numbers) - known_count
    if not known_count:
        return Stripped(batch, tuple(series), 0, new_count)
    sent = message_from_folded(pruned(replace(folded, series=tuple(kept))))
    return Stripped(sent, tuple(series), known_count, new_count)


def whole(batch: pb.FoldedBatch, hasher: KeyHasher) -> Stripped:
    """Send everything, but know what the answer refers to."""
    return stripped(batch, hasher, KnownKeys())


def _numbered(rows: Rows, numbers: Index, known_rows: Index, new_rows: Index) -> Rows:
    """Put known rows first, by number; rows with one number become one row."""
    sorted_numbers = numbers[known_rows]
    is_first = np.ones(len(known_rows), np.bool_)
    is_first[1:] = sorted_numbers[1:] != sorted_numbers[:-1]
    starts = None if is_first.all() else np.flatnonzero(is_first)
    columns = tuple(_reordered(column, known_rows, new_rows, starts) for column in rows.columns)
    return Rows(rows.labels, rows.kind, sorted_numbers[is_first].astype(np.uint64), rows.keys.take(new_rows), columns)


def _reordered(column: Values, known_rows: Index, new_rows: Index, starts: Index | None) -> Values:
    if column.times_first:
        return column
    known = column.values[known_rows]
    if starts is not None:
        merge = np.maximum if column.merge == pb.MERGE_MAX else np.add
        known = merge.reduceat(known, starts)
    return Values(column.name, column.unit, column.merge, 0, np.concatenate((known, column.values[new_rows])))
