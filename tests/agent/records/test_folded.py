# SPDX-License-Identifier: Apache-2.0
"""Batches as columns: nothing is lost on the way there and back, and pruning keeps what rows refer to."""

import dataclasses

import numpy as np
import pytest

from agent.records.folded import folded_from_message, message_from_folded, pruned
from emberwatch.v1.columns import ColumnError
from tests.support.batches import batch_of
from tests.support.drains import rows_of_batch

BATCH = batch_of(
    [
        ("web", "main", ["app+0x3", "app+0x1"], 7),
        ("web", "io", ["lib+0x2", "jit:go", "app+0x1"], 23),
        ("db", "main", ["_text+0x5", "bpf:prog", "[exited]"], 3),
    ]
)


def test_there_and_back_is_the_same_rows() -> None:
    again = message_from_folded(folded_from_message(BATCH))
    assert rows_of_batch(again) == rows_of_batch(BATCH)
    assert (again.host, again.accounts, again.binaries) == (BATCH.host, BATCH.accounts, BATCH.binaries)


def test_pruning_drops_nothing_that_is_used() -> None:
    assert message_from_folded(pruned(folded_from_message(BATCH))).stacks == BATCH.stacks


def test_pruning_keeps_callers_binaries_and_names_of_the_rows_left() -> None:
    folded = folded_from_message(BATCH)
    web = folded.series[0]
    kept = dataclasses.replace(
        web,
        keys=web.keys.take(np.array([1])),
        columns=tuple(c if c.times_first else dataclasses.replace(c, values=c.values[1:]) for c in web.columns),
    )
    tables = pruned(dataclasses.replace(folded, series=(kept,))).tables
    assert [binary.path for binary in tables.binaries] == [b"", b"/bin/app", b"/bin/lib"]
    assert sorted(tables.strings) == [b"", b"go", b"io"]
    assert (len(tables.node_parents), len(tables.frame_kinds)) == (4, 4)
    again = message_from_folded(pruned(dataclasses.replace(folded, series=(kept,))))
    assert rows_of_batch(again) == {(b"web", b"io", ("lib+0x2", "jit:go", "app+0x1*")): 23}


def test_column_that_is_off_is_an_error() -> None:
    batch = batch_of([("web", "main", ["app+0x1"], 7)])
    batch.stacks.frames.width = 3
    with pytest.raises(ColumnError):
        folded_from_message(batch)
