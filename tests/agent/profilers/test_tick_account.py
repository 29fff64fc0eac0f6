# SPDX-License-Identifier: Apache-2.0
"""The account over all CPUs holds exactly, whatever the timers do. Period 10 ms, windows of 10 s."""

import numpy as np

from agent.profilers.tick_account import TickAccounts
from agent.profilers.ticks import TICK_COUNTS
from agent.records.drain import TickAccount
from emberwatch.v1 import marks_pb2 as marks

PERIOD_NS = 10_000_000
SECOND_NS = 1_000_000_000
Counts = dict[str, int]


class FakeTimers:
    """Timers of the CPUs that are online."""

    def __init__(self, online: set[int]) -> None:
        self.cpus_online = online
        self.now_ns = 0
        self.open: set[int] = set()
        self.reopened: list[int] = []

    def open_missing(self) -> dict[int, int]:
        missing = self.cpus_online - self.open
        self.open |= missing
        self.reopened += sorted(missing)
        return dict.fromkeys(missing, self.now_ns)

    def forget(self, cpu: int) -> None:
        self.open.discard(cpu)

    def online(self) -> frozenset[int]:
        return frozenset(self.cpus_online)


class Host:
    """A host of so many CPUs whose windows are closed one by one."""

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self.timers = FakeTimers(set(range(cpus)))
        self.idle_ns = dict.fromkeys(range(cpus), 0)
        self.accounts = TickAccounts(self.timers, PERIOD_NS, 0, lambda: dict(self.idle_ns))
        self.timers.reopened.clear()

    def close(self, end_s: int, stored: int, **per_cpu: Counts) -> TickAccount:
        """`per_cpu` names CPUs cpu0, cpu1 …; times are given in ticks."""
        counts = np.zeros(self.cpus, TICK_COUNTS)
        for name, values in per_cpu.items():
            for column, value in values.items():
                counts[int(name[3:])][column] = value * PERIOD_NS if column.endswith("_ns") else value
        self.timers.now_ns = end_s * SECOND_NS
        account = self.accounts.close_window(counts, stored, end_s * SECOND_NS)
        assert account.expected == stored + account.idle + account.filtered + sum(account.lost.values())
        return account


def test_all_ticks_seen_leaves_nothing_lost() -> None:
    account = Host(1).close(10, 700, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 700, "idle": 277, "filtered": 23})
    assert account == TickAccount(expected=1000, idle=277, filtered=23, lost={})


def test_losses_of_maps_and_timer_have_their_reasons() -> None:
    account = Host(1).close(10, 900, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 900, "map_full": 7, "map_busy": 3})
    lost = {marks.LOSS_REASON_MAP_FULL: 7, marks.LOSS_REASON_MAP_BUSY: 3, marks.LOSS_REASON_TIMER_MISSED: 90}
    assert account == TickAccount(expected=1000, idle=0, filtered=0, lost=lost)


def test_missed_ticks_of_an_idle_cpu_are_idle() -> None:
    host = Host(2)
    host.idle_ns[1] = 6 * SECOND_NS
    account = host.close(
        10, 1300, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 1000}, cpu1={"first_ns": 1, "last_ns": 1000, "stored": 300}
    )
    # CPU 1: 700 were not seen; it was idle for 6 s and some slack: 602 of them.
    assert (account.expected, account.idle, account.lost) == (2000, 602, {marks.LOSS_REASON_TIMER_MISSED: 98})


def test_idle_ticks_that_were_seen_are_not_counted_again() -> None:
    host = Host(1)
    host.idle_ns[0] = 5 * SECOND_NS
    account = host.close(10, 400, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 400, "idle": 500})
    assert (account.idle, account.lost) == (502, {marks.LOSS_REASON_TIMER_MISSED: 98})


def test_sum_of_counts_that_is_less_than_was_stored_shows() -> None:
    account = Host(1).close(10, 993, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 1000})
    assert account.lost == {marks.LOSS_REASON_UNEXPLAINED: 7}


def test_nothing_is_due_on_a_cpu_that_left() -> None:
    host = Host(2)
    host.timers.cpus_online = {0}
    full = {"first_ns": 1, "last_ns": 1000, "stored": 1000}
    account = host.close(10, 1400, cpu0=full, cpu1={"first_ns": 1, "last_ns": 400, "stored": 400})
    assert (account.expected, account.lost) == (1400, {})
    assert host.timers.open == {0}
    assert host.close(20, 1000, cpu0={"first_ns": 1001, "last_ns": 2000, "stored": 1000}).expected == 1000


def test_cpu_that_comes_back_lost_a_window_at_most() -> None:
    host = Host(2)
    host.timers.cpus_online = {0}
    host.close(10, 1000, cpu0={"first_ns": 1, "last_ns": 1000, "stored": 1000})
    host.timers.cpus_online = {0, 1}
    account = host.close(20, 1000, cpu0={"first_ns": 1001, "last_ns": 2000, "stored": 1000})
    assert account.lost == {marks.LOSS_REASON_CPU_OFFLINE: 1000}
    assert host.timers.reopened == [1]
    last = {"cpu0": {"first_ns": 2001, "last_ns": 3000, "stored": 1000}, "cpu1": {"first_ns": 2001, "last_ns": 3000, "stored": 1000}}
    assert host.close(30, 2000, **last) == TickAccount(expected=2000, idle=0, filtered=0, lost={})


def test_timer_that_fell_silent_on_a_working_cpu_is_opened_again() -> None:
    host = Host(1)
    account = host.close(10, 300, cpu0={"first_ns": 1, "last_ns": 300, "stored": 300})
    assert (account.expected, account.idle) == (999, 0)  # due up to one period ago
    assert account.lost == {marks.LOSS_REASON_CPU_OFFLINE: 699}
    assert host.timers.reopened == [0]
    assert host.close(20, 1000, cpu0={"first_ns": 1001, "last_ns": 2000, "stored": 1000}).lost == {}


def test_timer_of_a_sleeping_cpu_is_left_alone() -> None:
    host = Host(1)
    host.idle_ns[0] = 10 * SECOND_NS
    account = host.close(10, 0)
    assert (account.expected, account.idle, account.lost) == (999, 999, {})
    assert host.timers.reopened == []
