# SPDX-License-Identifier: Apache-2.0
"""Parcels hold the whole batch, in one part or in many."""

import zlib
from collections import Counter

import numpy as np
import zstandard

from agent.collect.encode import Numbering, PartLimits, parcels_from_batch
from agent.profilers.registry import EVENT_KINDS
from agent.records.window import SHIPPED_KINDS, Parcel, WindowTime
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from emberwatch.v1 import marks_pb2 as marks
from tests.support.batches import Row, batch_of
from tests.support.drains import rows_of_batch

TIME = WindowTime(1000, 2000)
ROWS: list[Row] = [("web", "main", [f"app+{at * 7919 % 65536:#x}", "app+0x1"], 7) for at in range(50)]
ROWS += [("db", f"t{at}", ["lib+0x2", "app+0x1"], 3) for at in range(23)]


def _batch(parcel: Parcel) -> pb.FoldedBatch:
    raw = zstandard.ZstdDecompressor().decompress(parcel.payload)
    assert (len(raw), zlib.crc32(raw)) == (parcel.raw_size_bytes, parcel.raw_crc32)
    return pb.FoldedBatch.FromString(raw)


def _check_parts(parcels: list[Parcel], whole: pb.FoldedBatch) -> None:
    """Together the parts are the whole, each with its own tables; accounts ride on the last."""
    batches = [_batch(parcel) for parcel in parcels]
    rows = Counter[tuple[bytes, bytes, tuple[str, ...]]]()
    for batch in batches:
        rows.update(rows_of_batch(batch))
    assert rows == rows_of_batch(whole)
    assert [parcel.samples for parcel in parcels] == [sum(rows_of_batch(batch).values()) for batch in batches]
    assert [len(batch.accounts) for batch in batches] == [0] * (len(parcels) - 1) + [1]
    assert batches[-1].accounts[0] == whole.accounts[0]
    assert [(parcel.sequence, parcel.part, parcel.is_last_part) for parcel in parcels] == [
        (5 + part, part, part == len(parcels) - 1) for part in range(len(parcels))
    ]


def test_usual_window_is_one_parcel() -> None:
    batch = batch_of(ROWS)
    (parcel,) = parcels_from_batch(batch, TIME, Numbering(77, 5))
    assert _batch(parcel) == batch
    assert (parcel.epoch_unix_ns, parcel.window_start_unix_ns, parcel.window_end_unix_ns) == (77, 1000, 2000)
    _check_parts([parcel], batch)


def test_raw_size_at_the_limit_is_one_part_and_one_byte_less_makes_two() -> None:
    batch = batch_of(ROWS)
    size = batch.ByteSize()
    assert len(parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(raw_bytes=size))) == 1
    parts = parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(raw_bytes=size - 1))
    assert len(parts) == 2
    _check_parts(parts, batch)


def test_one_huge_series_is_cut_by_rows() -> None:
    batch = batch_of(ROWS[:50])
    parts = parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(rows=7))
    assert len(parts) == 8
    _check_parts(parts, batch)


def test_message_limit_counts_compressed_bytes_and_the_envelope() -> None:
    batch = batch_of(ROWS)
    parts = parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(message_bytes=1024 + 400))
    assert len(parts) > 1
    assert all(len(part.payload) <= 400 for part in parts)
    _check_parts(parts, batch)


def test_row_that_fits_nowhere_is_sent_for_the_server_to_refuse() -> None:
    batch = batch_of(ROWS[:3])
    parts = parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(raw_bytes=10))
    assert len(parts) == 3
    _check_parts(parts, batch)


def test_empty_window_is_a_parcel_with_its_account() -> None:
    batch = batch_of([])
    parcels = parcels_from_batch(batch, TIME, Numbering(1, 5), PartLimits(raw_bytes=10))
    assert len(parcels) == 1
    _check_parts(parcels, batch)


def test_lost_parcel_counts_its_samples_and_the_losses_it_tells_of() -> None:
    batch = batch_of(ROWS[:2], losses={marks.LOSS_REASON_TIMER_MISSED: 23, marks.LOSS_REASON_TRUNCATED: 7})
    (parcel,) = parcels_from_batch(batch, TIME, Numbering(1, 5))
    assert parcel.counts == (7 + 7 + 23,)


def test_every_kind_counts_what_its_rows_and_its_account_hold() -> None:
    batch = batch_of(ROWS[:2])
    lock = batch.series.add(kind="lock")
    lock.columns.add(name="count", values=columns.encode_column(np.array([3, 23], np.uint64)))
    lock.columns.add(name="ns", values=columns.encode_column(np.array([7000, 9000], np.uint64)))
    batch.accounts.add(kind="tcp", losses=[pb.Loss(reason=marks.LOSS_REASON_MAP_FULL, value=11)])
    (parcel,) = parcels_from_batch(batch, TIME, Numbering(1, 5))
    assert dict(zip(SHIPPED_KINDS, parcel.counts, strict=False)) == {
        "cpu": 14, "offcpu": 0, "runqueue": 0, "time": 0, "lock": 26, "syscall": 0, "syscall_stack": 0, "tcp": 11,
    }  # fmt: skip


def test_every_kind_that_is_profiled_has_its_place() -> None:
    assert set(SHIPPED_KINDS) == {"cpu", *EVENT_KINDS}
