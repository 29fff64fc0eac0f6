# SPDX-License-Identifier: Apache-2.0
"""Waits that are open at the end of a window, and the columns of long waits."""

import numpy as np

from agent.profilers.breaker import Share
from agent.profilers.thread_rows import Moment, Rows, ThreadState
from agent.profilers.wait_classes import WaitClass
from agent.profilers.wait_rows import (
    COUNT_PARTS,
    WAIT_KEY,
    WAIT_VALUE,
    Reports,
    WaitKind,
    WaitRows,
    class_numbers,
    offcpu_columns,
    open_rows,
    runqueue_columns,
)
from tests.support.threads import thread

MS = 1_000_000
WHOLE = Share(10, 10)


def _open(now_ms: int, *threads: Rows, before_ms: int = 0, threshold_ms: int = 1, on_since_ms: int = 0) -> WaitRows:
    return open_rows(np.concatenate(threads), Moment(now_ms * MS, on_since_ms * MS), Reports(threshold_ms * MS, before_ms * MS))


def test_open_wait_is_told_up_to_now_and_then_only_what_came_since() -> None:
    asleep = thread(7, ThreadState.BLOCKED, 3 * MS, wait_class=WaitClass.DISK, is_uninterruptible=1)
    first = _open(13, asleep).values[0]
    assert (first["observed"], first["ns"], first["max_ns"], first["uninterruptible_ns"]) == (1, 10 * MS, 10 * MS, 10 * MS)
    second = _open(33, asleep, before_ms=13).values[0]
    assert (second["observed"], second["ns"], second["max_ns"]) == (1, 20 * MS, 30 * MS)


def test_wait_that_was_short_at_the_last_look_is_told_whole() -> None:
    assert _open(20, thread(7, ThreadState.BLOCKED, 12 * MS), before_ms=13, threshold_ms=5).values["ns"].tolist() == [8 * MS]


def test_short_waits_and_other_states_are_no_rows() -> None:
    threads = [thread(7, ThreadState.BLOCKED, 19 * MS), thread(8, ThreadState.RUNNING, 0), thread(9, ThreadState.DEAD, 0)]
    assert len(_open(20, *threads, threshold_ms=5).keys) == 0


def test_wait_that_ended_between_the_moment_and_the_read_is_told_up_to_the_moment() -> None:
    crossed = {"crossed_at_ns": 20 * MS, "crossed_since_ns": 12 * MS, "crossed_class": WaitClass.PIPE}
    ended = thread(7, ThreadState.RUNNABLE, 21 * MS, **crossed)
    waits_again = thread(8, ThreadState.BLOCKED, 22 * MS, wait_class=WaitClass.NET, stack_since_ns=12 * MS, **crossed)
    waits_again["own"]["user_stack"] = 99
    rows = _open(20, ended, waits_again)
    assert rows.values["ns"].tolist() == [8 * MS, 8 * MS]
    assert rows.keys["wait_class"].tolist() == [WaitClass.PIPE, WaitClass.PIPE]
    assert rows.keys["own"]["user_stack"].tolist() == [0, 99]


def test_wait_that_ended_before_the_kernel_knew_of_the_moment_is_the_kernels_to_tell() -> None:
    ended = thread(7, ThreadState.RUNNABLE, 21 * MS, blocked_whole_ns=9 * MS, crossed_at_ns=10 * MS, crossed_since_ns=3 * MS)
    assert len(_open(20, ended).keys) == 0


def test_wait_is_no_longer_than_events_have_been_seen() -> None:
    assert _open(20, thread(7, ThreadState.BLOCKED, 3 * MS), on_since_ms=15).values["ns"].tolist() == [5 * MS]


def test_wait_that_goes_on_over_a_time_without_events_keeps_its_stack() -> None:
    asleep = thread(7, ThreadState.BLOCKED, 3 * MS, stack_since_ns=3 * MS)
    asleep["own"]["user_stack"] = 99
    assert _open(20, asleep, on_since_ms=15).keys["own"]["user_stack"].tolist() == [99]


def test_clock_that_is_ahead_makes_no_wait_negative() -> None:
    assert len(_open(20, thread(7, ThreadState.BLOCKED, 25 * MS), threshold_ms=0).keys) == 0


def test_stack_of_an_earlier_wait_is_not_that_of_this_one() -> None:
    old = thread(7, ThreadState.BLOCKED, 3 * MS, stack_since_ns=1)
    old["own"]["user_stack"] = 99
    fresh = old.copy()
    fresh["stack_since_ns"] = 3 * MS
    rows = _open(20, old, fresh)
    assert rows.keys["own"]["user_stack"].tolist() == [0, 99]
    assert rows.keys["own"]["pid"].tolist() == [7, 7]


def _rows(*values: tuple[int, int, int, int, int]) -> WaitRows:
    keys = np.zeros(len(values), WAIT_KEY)
    return WaitRows(keys, np.array(list(values), WAIT_VALUE))


def test_what_was_seen_for_a_fifth_of_the_time_counts_five_times_but_its_longest() -> None:
    columns = {one.name: one.values.tolist() for one in offcpu_columns(_rows((2, 2 * COUNT_PARTS, 700, 400, 23)), Share(2, 10))}
    assert columns == {"count": [10], "ns": [3500], "max_ns": [400], "observed": [2], "uninterruptible_ns": [115]}


def test_waits_that_stand_for_others_count_as_many() -> None:
    columns = {one.name: one.values.tolist() for one in offcpu_columns(_rows((2, 23 * COUNT_PARTS + 100, 700, 400, 0)), WHOLE)}
    assert (columns["count"], columns["observed"], columns["ns"]) == ([23], [2], [700])


def test_run_queue_counts_by_bucket_long_and_short() -> None:
    rows = _rows((3, 3 * COUNT_PARTS, 6000, 4000, 0))
    rows.keys["bucket"] = 12
    short = np.zeros((1, 32), np.uint64)
    short[0, 4], short[0, 5] = 7, 2
    one = np.array([23], np.uint64)
    columns = {one.name: one.values.tolist() for one in runqueue_columns(rows, (one, one, short), WHOLE)}
    assert (columns["count"], columns["ns"], columns["max_ns"]) == ([3, 9], [6000, 23], [4000, 23])
    assert columns["observed"] == [3, 9]
    assert (columns["bucket_12"], columns["bucket_04"], columns["bucket_05"]) == ([3, 0], [0, 7], [0, 2])


def test_kinds_and_classes_of_rows() -> None:
    rows = _rows((1, COUNT_PARTS, 1, 1, 0), (2, 2 * COUNT_PARTS, 2, 2, 0))
    rows.keys["kind"] = [WaitKind.RUNQUEUE, WaitKind.OFFCPU]
    rows.keys["wait_class"] = [0, WaitClass.CHILD]
    offcpu = rows.of_kind(WaitKind.OFFCPU)
    assert offcpu.values["observed"].tolist() == [2]
    assert class_numbers(offcpu).tolist() == [WaitClass.CHILD + 1]
