# SPDX-License-Identifier: Apache-2.0
"""Turns the batch of a window into parcels (hop 6 of the path in README): compressed, and cut into parts when it is too large."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import zstandard

from agent.records.folded import Folded, Rows, Values, folded_from_message, message_from_folded, pruned
from agent.records.window import SHIPPED_KINDS, Parcel, WindowTime
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns

MESSAGE_LIMIT_BYTES = 16 << 20
RAW_LIMIT_BYTES = 64 << 20
ROW_LIMIT = 1 << 20
_ENVELOPE_BYTES = 1024
"""Room in a message for everything but the payload."""
ZSTD_LEVEL = 3
_FIRST_STORED_LOSS = 100
"""Losses from here on are of samples that were stored; see marks.proto."""


@dataclass(frozen=True, slots=True)
class PartLimits:
    """How large one part may be."""

    message_bytes: int = MESSAGE_LIMIT_BYTES
    raw_bytes: int = RAW_LIMIT_BYTES
    rows: int = ROW_LIMIT


@dataclass(frozen=True, slots=True)
class Numbering:
    """What parcels are numbered by."""

    epoch_unix_ns: int
    first_sequence: int


@dataclass(frozen=True, slots=True)
class _Part:
    payload: bytes
    raw_size_bytes: int
    raw_crc32: int
    counts: tuple[int, ...]


def parcels_from_batch(batch: pb.FoldedBatch, time: WindowTime, numbering: Numbering, limits: PartLimits | None = None) -> list[Parcel]:
    """Encode a whole batch. Usually one parcel; the accounts ride on the last one.

    A batch over the limits is halved by rows until each part fits. One row that does not fit alone is sent as it is: the server's
    refusal is then counted.
    """
    parts = list(_parts(batch, limits or PartLimits()))
    return [
        Parcel(
            epoch_unix_ns=numbering.epoch_unix_ns,
            sequence=numbering.first_sequence + index,
            part=index,
            is_last_part=index == len(parts) - 1,
            window_start_unix_ns=time.start_unix_ns,
            window_end_unix_ns=time.end_unix_ns,
            payload=part.payload,
            raw_size_bytes=part.raw_size_bytes,
            raw_crc32=part.raw_crc32,
            counts=part.counts,
        )
        for index, part in enumerate(parts)
    ]


def counts_of_batch(batch: pb.FoldedBatch) -> tuple[int, ...]:
    """Add up what the server would not hear of without this batch: of each of SHIPPED_KINDS what is stored or told as lost, in the unit of
    its first column. The last ones are left out when they are 0."""
    counts = dict.fromkeys(SHIPPED_KINDS, 0)
    for series in batch.series:
        if series.kind in counts:
            counts[series.kind] += int(columns.decode_column(series.columns[0].values, 1 << 26).sum())
    for account in batch.accounts:
        if account.kind in counts:
            counts[account.kind] += sum(loss.value for loss in account.losses if loss.reason < _FIRST_STORED_LOSS)
    used = max((place for place, count in enumerate(counts.values()) if count), default=0)
    return tuple(counts.values())[: used + 1]


def _parts(batch: pb.FoldedBatch, limits: PartLimits) -> Iterator[_Part]:
    raw = batch.SerializeToString()
    if len(raw) <= limits.raw_bytes and _row_count(batch) <= limits.rows:
        payload = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
        if len(payload) + _ENVELOPE_BYTES <= limits.message_bytes:
            yield _Part(payload, len(raw), zlib.crc32(raw), counts_of_batch(batch))
            return
    if _row_count(batch) < 2:
        payload = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
        yield _Part(payload, len(raw), zlib.crc32(raw), counts_of_batch(batch))
        return
    del raw
    for half in _halves(folded_from_message(batch)):
        yield from _parts(message_from_folded(pruned(half)), limits)


def _row_count(batch: pb.FoldedBatch) -> int:
    stacks = [series.new_keys.stacks for series in batch.series]
    return sum(len(column.data) // column.width for column in stacks if column.width)


def _halves(folded: Folded) -> tuple[Folded, Folded]:
    """Cut by rows in the order of series; a series on the cut stands in both. Accounts go with the second half."""
    middle = sum(len(rows) for rows in folded.series) // 2
    first: list[Rows] = []
    second: list[Rows] = []
    done = 0
    for rows in folded.series:
        cut = min(max(middle - done, 0), len(rows))
        done += len(rows)
        if cut:
            first.append(_slice(rows, 0, cut))
        if cut < len(rows) or not len(rows):
            second.append(_slice(rows, cut, len(rows)))
    return replace(folded, series=tuple(first), accounts=[]), replace(folded, series=tuple(second))


def _slice(rows: Rows, first: int, end: int) -> Rows:
    """Rows first..end of a series without known keys."""
    kept = tuple(_slice_values(column, first, end) for column in rows.columns)
    return replace(rows, keys=rows.keys.take(np.arange(first, end)), columns=kept)


def _slice_values(column: Values, first: int, end: int) -> Values:
    return column if column.times_first else replace(column, values=column.values[first:end])
