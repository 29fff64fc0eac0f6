# SPDX-License-Identifier: Apache-2.0
"""Layout of stacks before they become a tree; what each loss looks like is in test_window.py."""

import numpy as np

from agent.collect.locate import Locator
from agent.collect.places import NUMBER_SHIFT, PlaceTable
from agent.collect.stacks import RowStacks, Sources, StackedRows, StackLosses, stacks_of_rows
from agent.records.drain import StackStop
from emberwatch.v1 import marks_pb2 as marks
from tests.support.drains import NO_LAYOUT, DrainOf, elf, mapped, process

WEB = process(7, mapped(0x1000, 0x9000, 0x1000, binary=elf("app")))


def _laid_out(drain: DrainOf) -> tuple[RowStacks, StackLosses]:
    zeros = np.zeros(len(drain.keys), np.int64)
    made = drain.drain()
    rows = StackedRows(made.keys, made.stacks, made.counts, zeros)
    losses = StackLosses(rows)
    return stacks_of_rows(rows, Sources(Locator(PlaceTable()), [WEB], zeros, NO_LAYOUT), losses), losses


def _stacks(drain: DrainOf) -> RowStacks:
    return _laid_out(drain)[0]


def test_equal_stacks_are_laid_out_once() -> None:
    drain = DrainOf().row(7, 7, user=[0x1010, 0x1020]).row(7, 3, user=[0x1030]).row(7, 5, user=[0x1010, 0x1020], comm=b"io")
    stacks = _stacks(drain)
    assert np.diff(stacks.bounds).tolist() in ([2, 1], [1, 2])
    assert stacks.stack_of_row[0] == stacks.stack_of_row[2] != stacks.stack_of_row[1]


def test_only_the_first_frame_is_where_the_cpu_was() -> None:
    stacks = _stacks(DrainOf().row(7, 7, user=[0x1010, 0x1010, 0x1020]))
    assert (stacks.codes & np.uint64(1)).tolist() == [0, 1, 1]
    assert stacks.codes[0] + np.uint64(1) == stacks.codes[1]


def test_first_user_frame_below_a_lost_kernel_stack_is_a_return_address() -> None:
    stacks, losses = _laid_out(DrainOf().row(7, 7, user=[0x1010], kernel_error=-12))
    assert (stacks.codes & np.uint64(1)).tolist() == [0, 1]
    assert losses.of_kind(0) == {marks.LOSS_REASON_STACK_ENOMEM: 7}


def test_losses_add_up_over_rows() -> None:
    drain = DrainOf().row(7, 7, user_error=-12).row(7, 23, user=[0x1010], kernel_error=-12).row(7, 3, user_error=-5)
    assert _laid_out(drain)[1].of_kind(0) == {marks.LOSS_REASON_STACK_ENOMEM: 30, marks.LOSS_REASON_STACK_OTHER: 3}


def test_stack_that_was_not_walked_to_its_bottom_says_why() -> None:
    stopped = {
        StackStop.NO_MAPPING: marks.MARK_UNWIND_STOPPED_NO_MAPPING,
        StackStop.NO_ROW: marks.MARK_UNWIND_STOPPED_NO_ROW,
        StackStop.UNSUPPORTED: marks.MARK_UNWIND_STOPPED_UNSUPPORTED,
        StackStop.UNREADABLE: marks.MARK_UNWIND_STOPPED_UNREADABLE,
        StackStop.ZERO_RETURN: marks.MARK_UNWIND_STOPPED_ZERO_RETURN_ADDRESS,
        StackStop.NOT_GROWING: marks.MARK_UNWIND_STOPPED_STACK_NOT_GROWING,
        StackStop.NO_TABLE: marks.MARK_UNWIND_STOPPED_NO_TABLE,
    }
    assert set(stopped) == set(StackStop) - {StackStop.NONE, StackStop.BOTTOM, StackStop.CAP}
    for stop, mark in stopped.items():
        stacks, losses = _laid_out(DrainOf().row(7, 7, user=[0x1010], stop=stop).row(7, 3, user=[0x1010], stop=StackStop.BOTTOM))
        assert sorted(np.diff(stacks.bounds).tolist()) == [1, 2]
        assert mark in (stacks.codes >> NUMBER_SHIFT).tolist()
        assert losses.of_kind(0) == {marks.LOSS_REASON_UNWIND_STOPPED: 7}


def test_truncated_stack_is_not_also_stopped() -> None:
    stacks, losses = _laid_out(DrainOf().row(7, 7, user=[0x1010], is_truncated=True, stop=StackStop.CAP))
    assert losses.of_kind(0) == {marks.LOSS_REASON_TRUNCATED: 7}
    assert (stacks.codes >> NUMBER_SHIFT).tolist()[1] == marks.MARK_TRUNCATED


def test_stack_without_a_single_frame_is_its_mark() -> None:
    stacks = _stacks(DrainOf().row(7, 7, user=[], stop=StackStop.UNREADABLE))
    assert (stacks.codes >> NUMBER_SHIFT).tolist() == [marks.MARK_UNWIND_STOPPED_UNREADABLE]
