# SPDX-License-Identifier: Apache-2.0
"""The three kinds of a window: exact sums by process, long waits with class and waker, all accounts closed."""

import numpy as np

from agent.profilers.breaker import Share
from agent.profilers.event_host import ClosedWindow
from agent.profilers.thread_rows import FIRST_BUCKET, ThreadState
from agent.profilers.thread_times import ThreadWindow, departed_window
from agent.profilers.wait_drains import WaitLosses, WaitWindow, offcpu_drain, runqueue_drain, time_drain
from agent.profilers.wait_rows import COUNT_PARTS, WAIT_KEY, WAIT_VALUE, WaitKind, WaitRows
from emberwatch.v1 import marks_pb2 as marks
from tests.support.drains import DrainOf
from tests.support.threads import thread

STACKS = DrainOf().row(7, 1, user=[0x10]).drain().stacks


def _threads(*pids: int) -> ThreadWindow:
    entries = np.concatenate([thread(pid, ThreadState.DEAD, 0, cpu_ns=7, switches=3, short_runnable_ns=23) for pid in pids])
    window = departed_window(entries, entries["sums"])
    window.threads[:] = 1
    window.sums[:, FIRST_BUCKET + 4] = 3
    return window


def _window(rows: WaitRows, threads: ThreadWindow, losses: WaitLosses | None = None, share: Share | None = None) -> WaitWindow:
    return WaitWindow(ClosedWindow(0, 0, 10, STACKS), share or Share(10, 10), rows, threads, STACKS, losses or WaitLosses())


def _rows(count: int = 0) -> WaitRows:
    return WaitRows(np.zeros(count, WAIT_KEY), np.array([(1, COUNT_PARTS, 1, 1, 1)] * count, WAIT_VALUE))


def test_time_has_one_row_a_process_and_counts_its_threads() -> None:
    drain = time_drain(_window(_rows(), _threads(7, 8, 7)))
    columns = {one.name: one.values.tolist() for one in drain.columns}
    assert drain.keys["pid"].tolist() == [7, 8]
    assert (columns["switches"], columns["cpu_ns"], columns["threads"]) == ([6, 3], [14, 7], [2, 1])
    assert drain.stacks is None
    assert drain.account.expected == 9


def test_sums_of_a_window_seen_in_part_are_scaled_and_threads_are_not() -> None:
    drain = time_drain(_window(_rows(), _threads(7), share=Share(5, 10)))
    columns = {one.name: one.values.tolist() for one in drain.columns}
    assert (columns["switches"], columns["cpu_ns"], columns["threads"]) == ([6], [14], [1])


def test_wakers_are_second_stacks() -> None:
    rows = _rows(2)
    rows.keys["waker"]["pid"] = [0, 9]
    rows.keys["waker"]["user_stack"] = [0, STACKS.hashes[0]]
    drain = offcpu_drain(_window(rows, _threads(7)))
    assert drain.seconds is not None
    assert drain.seconds["pid"].tolist() == [0, 9]
    assert drain.seconds["user_stack"].tolist() == [0, int(STACKS.hashes[0])]


def test_run_queue_joins_long_waits_with_what_stayed_short() -> None:
    rows = _rows(1)
    rows.keys["kind"] = WaitKind.RUNQUEUE
    drain = runqueue_drain(_window(rows, _threads(7)))
    columns = {one.name: one.values.tolist() for one in drain.columns}
    assert (columns["count"], columns["ns"]) == ([1, 3], [1, 23])
    assert len(offcpu_drain(_window(rows, _threads(7)))) == 0


def test_what_found_no_room_is_due_and_lost() -> None:
    losses = WaitLosses(threads_full=3, departed_full=1, offcpu_full=5, offcpu_busy=2, runqueue_full=23, runqueue_busy=7, unseen=4)
    account = offcpu_drain(_window(_rows(2), _threads(7), losses)).account
    assert account.expected == 2 + 11
    assert dict(account.lost) == {marks.LOSS_REASON_MAP_FULL: 5, marks.LOSS_REASON_MAP_BUSY: 2, marks.LOSS_REASON_UNPAIRED: 4}
    account = runqueue_drain(_window(_rows(), _threads(7), losses)).account
    assert (account.expected, dict(account.lost)) == (3 + 31, {marks.LOSS_REASON_MAP_FULL: 24, marks.LOSS_REASON_MAP_BUSY: 7})
    account = time_drain(_window(_rows(2), _threads(7), losses)).account
    assert (account.expected, dict(account.lost)) == (3 + 4, {marks.LOSS_REASON_MAP_FULL: 4})


def test_window_without_anything_has_no_rows() -> None:
    nobody = thread(7, ThreadState.DEAD, 0)[:0]
    window = _window(_rows(), departed_window(nobody, nobody["sums"]))
    assert [len(make(window)) for make in (offcpu_drain, runqueue_drain, time_drain)] == [0, 0, 0]
