# SPDX-License-Identifier: Apache-2.0
"""What happened between two looks at sums that only grow, whatever lies open at either."""

import numpy as np

from agent.profilers.thread_rows import CPU, FIRST_BUCKET, FIRST_CLASS, RUNNABLE, SWITCHES, Moment, Rows, ThreadState
from agent.profilers.thread_times import ThreadTimes, ThreadWindow, departed_window, joined
from agent.profilers.wait_classes import WaitClass
from tests.support.clocks import LaptopClock
from tests.support.threads import thread

S = 1_000_000_000
SLEEP = FIRST_CLASS + WaitClass.SLEEP


def _look(times: ThreadTimes, now_s: float, *threads: Rows, on_since_s: float = 0) -> ThreadWindow:
    tids = np.array([int(one["pid"][0]) for one in threads], np.uint32)
    return times.look(tids, np.concatenate(threads), Moment(int(now_s * S), int(on_since_s * S)), 3)


def _asleep(pid: int, since_s: float, closed_s: float = 0, **fields: object) -> Rows:
    class_ns = np.zeros(len(WaitClass), np.uint64)
    class_ns[WaitClass.SLEEP] = int(closed_s * S)
    return thread(pid, ThreadState.BLOCKED, int(since_s * S), wait_class=WaitClass.SLEEP, class_ns=class_ns, **fields)


def test_state_that_lasts_counts_in_each_window_for_as_long_as_that_lasted() -> None:
    times = ThreadTimes()
    assert _look(times, 13, _asleep(7, since_s=3)).sums[0, SLEEP] == 10 * S
    assert _look(times, 23, _asleep(7, since_s=3)).sums[0, SLEEP] == 10 * S
    # It woke at 26, was on the CPU for a second, and sleeps again.
    sums = _look(times, 33, _asleep(7, since_s=27, closed_s=23, cpu_ns=S, switches=1)).sums[0]
    assert (sums[SLEEP], sums[CPU], sums[SWITCHES]) == (9 * S, S, 1)


def test_suspend_is_no_waiting_and_what_comes_after_it_has_its_time() -> None:
    """A laptop sleeps for eight hours in the middle of a window, and of a thread's sleep."""
    clock = LaptopClock(monotonic_ns=10 * S, unix_ns=1_780_000_000 * S)
    times = ThreadTimes()
    _look(times, clock.monotonic_ns() // S, _asleep(7, since_s=3))
    clock.run(4 * S)
    clock.suspend(8 * 3600 * S)
    clock.run(6 * S)
    assert _look(times, clock.monotonic_ns() // S, _asleep(7, since_s=3)).sums[0].sum() == 10 * S
    start_ns, end_ns = (clock.offset().unix_ns(ns) for ns in (10 * S, 20 * S))
    assert (start_ns, end_ns) == (clock.unix_ns() - 10 * S, (1_780_000_010 + 8 * 3600) * S)


def test_states_are_told_apart() -> None:
    running, runnable = thread(7, ThreadState.RUNNING, 4 * S), thread(8, ThreadState.RUNNABLE, 8 * S)
    window = _look(ThreadTimes(), 10, running, runnable, thread(9, ThreadState.DEAD, 2 * S, cpu_ns=3))
    assert window.sums[:, [CPU, RUNNABLE]].tolist() == [[6 * S, 0], [0, 2 * S], [3, 0]]
    assert window.threads.tolist() == [1, 1, 0]


def test_nothing_is_counted_for_the_time_that_nobody_looked() -> None:
    times = ThreadTimes()
    assert _look(times, 13, _asleep(7, since_s=3)).sums[0, SLEEP] == 10 * S
    times.begin_again()  # attached again at 20
    assert _look(times, 23, _asleep(7, since_s=3), on_since_s=20).sums[0, SLEEP] == 3 * S


def test_no_thread_does_more_than_time_goes_by() -> None:
    """Entries are read a moment after the end of the window; what they hold of it belongs to the next."""
    times = ThreadTimes()
    _look(times, 10, _asleep(7, since_s=0))
    both = np.array([7, 8], np.uint32)
    assert times.is_told(both).tolist() == [True, True]
    assert _look(times, 20, _asleep(7, since_s=20.5, closed_s=20, cpu_ns=S // 2)).sums[0].sum() == 10 * S
    assert times.is_told(both).tolist() == [False, True]
    assert _look(times, 30, _asleep(7, since_s=20.5, closed_s=20, cpu_ns=S // 2)).sums[0].sum() == 10 * S


def test_sum_that_falls_waits_until_it_has_caught_up() -> None:
    times = ThreadTimes()
    _look(times, 10, thread(7, ThreadState.RUNNING, 10 * S, cpu_ns=5 * S))
    assert _look(times, 11, thread(7, ThreadState.RUNNING, 11 * S, cpu_ns=4 * S)).sums[0, CPU] == 0
    assert _look(times, 12, thread(7, ThreadState.RUNNING, 12 * S, cpu_ns=5 * S + 7)).sums[0, CPU] == 7


def test_another_thread_with_the_number_of_a_dead_one_begins_at_nothing() -> None:
    times = ThreadTimes()
    _look(times, 10, thread(7, ThreadState.RUNNING, 10 * S, cpu_ns=9 * S, born_window=1))
    assert _look(times, 11, thread(7, ThreadState.RUNNING, 11 * S, cpu_ns=3, born_window=2)).sums[0, CPU] == 3


def test_buckets_of_32_bits_may_go_round() -> None:
    times = ThreadTimes()
    buckets = np.zeros((1, 32), np.uint32)
    buckets[0, 4] = 0xFFFF_FFFE
    _look(times, 10, thread(7, ThreadState.RUNNING, 10 * S, short_buckets=buckets))
    buckets[0, 4] = 5
    assert _look(times, 11, thread(7, ThreadState.RUNNING, 11 * S, short_buckets=buckets)).sums[0, FIRST_BUCKET + 4] == 7


def test_longest_short_wait_is_of_this_window_only() -> None:
    threads = [thread(pid, ThreadState.RUNNING, S, short_max_ns=23, max_window=window) for pid, window in ((7, 2), (8, 3))]
    assert _look(ThreadTimes(), 2, *threads).short_max_ns.tolist() == [0, 23]


def test_threads_that_came_and_went_stand_beside_the_others() -> None:
    gone = thread(8, ThreadState.DEAD, 0, cpu_ns=23, short_max_ns=5)
    window = joined([_look(ThreadTimes(), 2, thread(7, ThreadState.RUNNING, S)), departed_window(gone, gone["sums"])])
    assert window.who["pid"].tolist() == [7, 8]
    assert window.sums[:, CPU].tolist() == [S, 23]
    assert window.threads.tolist() == [1, 0]


def test_no_threads_at_all() -> None:
    assert len(joined([]).who) == 0


def test_looks_at_different_times_do_not_add_up_threads() -> None:
    looks = [_look(ThreadTimes(), 2, *(thread(pid, ThreadState.RUNNING, S) for pid in pids)) for pids in ((7,), (7, 8), (8,))]
    assert joined(looks).threads.tolist() == [0, 1, 1, 0]
