# SPDX-License-Identifier: Apache-2.0
"""Stripping keeps every value and drops exactly what known keys needed."""

import numpy as np

from agent.ship.key_hash import KeyHasher
from agent.ship.known import KnownKeys
from agent.ship.strip import Stripped, stripped, whole
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.columns import decode_column, decode_strings, encode_column
from tests.support.batches import batch_of
from tests.support.drains import rows_of_batch

A, B, C, D = (["app+0xa", "app+0x1"], ["lib+0xb", "app+0x1"], ["app+0xc", "app+0x1"], ["jit:d", "app+0x1"])
BATCH = batch_of([("web", "main", A, 7), ("web", "main", B, 3), ("web", "main", C, 2), ("web", "io", D, 5)])
HASHER = KeyHasher(b"s" * 16)


def _knowing(batch: pb.FoldedBatch, numbers: list[int]) -> KnownKeys:
    """Knows the keys of the one series of `batch`."""
    known = KnownKeys()
    known.learn(b"D", whole(batch, HASHER).series[0].new_hashes, np.array(numbers, np.uint64))
    return known


def _known_and_values(sent: Stripped) -> tuple[list[int], list[int]]:
    (series,) = sent.batch.series
    return decode_column(series.known_keys, 99).tolist(), decode_column(series.columns[0].values, 99).tolist()


def test_known_rows_come_first_by_number_and_values_follow_them() -> None:
    known = _knowing(batch_of([("web", "main", B, 1), ("web", "io", D, 1)]), [40, 12])
    sent = stripped(BATCH, HASHER, known)
    assert _known_and_values(sent) == ([12, 40], [5, 3, 7, 2])
    assert (sent.known_count, sent.new_count) == (2, 2)
    assert sent.series[0].known_numbers.tolist() == [12, 40]


def test_tables_keep_what_new_rows_need() -> None:
    known = _knowing(batch_of([("web", "main", B, 1), ("web", "io", D, 1)]), [40, 12])
    batch = stripped(BATCH, HASHER, known).batch
    assert [binary.path for binary in batch.binaries] == [b"", b"/bin/app"]
    assert decode_strings(batch.strings, 9) == [b"", b"main"]
    assert batch.accounts == BATCH.accounts
    batch.series[0].known_keys.Clear()
    batch.series[0].columns[0].values.CopyFrom(encode_column([7, 2]))
    assert rows_of_batch(batch) == {
        (b"web", b"main", ("app+0xa", "app+0x1*")): 7,
        (b"web", b"main", ("app+0xc", "app+0x1*")): 2,
    }


def test_keys_that_have_one_number_become_one_row() -> None:
    known = _knowing(batch_of([("web", "main", A, 1), ("web", "main", B, 1), ("web", "main", C, 1), ("web", "io", D, 1)]), [3, 1, 3, 2])
    assert _known_and_values(stripped(BATCH, HASHER, known)) == ([1, 2, 3], [3, 5, 9])


def test_largest_is_kept_where_a_column_merges_by_it() -> None:
    batch = pb.FoldedBatch.FromString(BATCH.SerializeToString())
    batch.series[0].columns.append(pb.ValueColumn(name="max_ns", unit="ns", merge=pb.MERGE_MAX, values=encode_column([23, 5, 11, 1])))
    known = _knowing(BATCH, [3, 1, 3, 2])
    sent = stripped(batch, HASHER, known).batch.series[0]
    assert decode_column(sent.columns[-1].values, 9).tolist() == [5, 1, 23]


def test_numbers_belong_to_a_service() -> None:
    known = _knowing(BATCH, [0, 1, 2, 3])
    assert stripped(batch_of([("db", "main", A, 7)]), HASHER, known).known_count == 0
    assert stripped(batch_of([("web", "main", A, 7)], version="2"), HASHER, known).known_count == 1


def test_nothing_known_is_the_batch_itself() -> None:
    assert stripped(BATCH, HASHER, KnownKeys()).batch is BATCH
