# SPDX-License-Identifier: Apache-2.0
"""Programs run all the time below the limit, in duty cycles above it, and what is seen stands for the whole window."""

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import CYCLING_PART, LOOK_S, PERIOD_S, Breaker, Share

LIMIT = 1000
SPENT = LIMIT * CYCLING_PART
LATE_S = 0.001


class Host:
    """A clock, and programs that see `rate` events a second on the second CPU, half on the first, while they are attached. `gated` ones
    look away when they have seen as many as they may, and pay for being called until they are detached."""

    def __init__(self, rate: float, *, gated: bool = False) -> None:
        self.rate = rate
        self.gated = gated
        self.left = float("inf")
        self.shut_at_ns = 0
        self.looked_away = 0.0
        self.now_s = 5.0
        self.events = 0.0
        self.is_attached = False
        self.switches = 0

    def attach(self) -> None:
        assert not self.is_attached
        self.is_attached = True
        self.switches += 1

    def detach(self) -> None:
        assert self.is_attached
        self.is_attached = False

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        return np.array([self.events / 2, self.events], np.uint64)

    def now_ns(self) -> int:
        return round(self.now_s * 1e9)

    def run(self, breaker: Breaker, seconds: float) -> None:
        """Time goes by as in the agent's loop: it ticks when it is asked to, and a little late."""
        until_s = self.now_s + seconds
        while self.now_s < until_s - 1e-9:
            wait_s = breaker.tick()
            step_s = min(until_s - self.now_s, 1.0 if wait_s is None else wait_s + LATE_S)
            self.happen(self.rate * step_s * self.is_attached)
            self.now_s += step_s

    def happen(self, events: float) -> None:
        seen = min(events, self.left) if self.gated else events
        if seen < events and not self.shut_at_ns:
            self.shut_at_ns = self.now_ns() + round(seen / self.rate * 1e9)
        self.left -= seen
        self.events += seen
        self.looked_away += events - seen

    def open(self, most_events: int) -> None:
        self.left, self.shut_at_ns = most_events or float("inf"), 0

    def shut_ns(self) -> int:
        return self.shut_at_ns


def _started(rate: float, limit: int = LIMIT, *, gated: bool = False) -> tuple[Host, Breaker]:
    host = Host(rate, gated=gated)
    return host, Breaker(host, limit, 10.0, host.now_ns, host if gated else None)


def test_below_the_limit_everything_is_seen() -> None:
    host, breaker = _started(900)
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    assert (host.switches, share.on_ns, breaker.is_cycling) == (1, share.window_ns, False)
    assert share.scaled(np.array([7], np.uint32)).tolist() == [7]


def test_first_window_begins_when_the_programs_are_attached() -> None:
    class SlowHost(Host):
        def attach(self) -> None:
            super().attach()
            self.now_s += 0.3

    host = SlowHost(900)
    breaker = Breaker(host, LIMIT, 10.0, host.now_ns)
    host.run(breaker, 1)
    assert breaker.close_window(host.now_ns()).is_whole


def test_over_the_limit_the_busiest_cpu_pays_for_a_part_of_it_and_no_more() -> None:
    host, breaker = _started(10_000)
    host.run(breaker, 10)
    breaker.close_window(host.now_ns())
    before = host.events
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    seen = host.events - before
    # A period more or less at the edge, and what a look comes late.
    assert abs(seen / 10 - SPENT) < SPENT * (0.2 + 0.05)
    assert breaker.is_cycling
    assert abs(int(share.scaled(np.array([round(seen)], np.uint64))[0]) - 100_000) < 2_000


def test_a_gate_is_shut_as_the_budget_is_used_up_and_the_first_seconds_are_no_dearer() -> None:
    host, breaker = _started(400_000, gated=True)
    host.run(breaker, PERIOD_S)
    assert host.events <= LIMIT * PERIOD_S
    # Detached at the next look: until then each event cost a dispatch.
    assert host.looked_away <= 400_000 * 0.06
    before, away = host.events, host.looked_away
    host.run(breaker, 10 * PERIOD_S)
    assert abs(host.events - before - 10 * SPENT * PERIOD_S) <= LIMIT * PERIOD_S
    assert host.looked_away - away <= 10 * 400_000 * (0.02 + 2 * LATE_S)


def test_programs_that_have_looked_away_did_not_run_until_they_were_detached() -> None:
    host, breaker = _started(10_000, gated=True)
    host.run(breaker, 0.01)
    host.rate = 40_000  # used up long before the next look
    host.run(breaker, 0.1)
    share = breaker.close_window(host.now_ns())
    assert abs(share.on_ns / 1e9 - (0.01 + (LIMIT * PERIOD_S - 100) / 40_000)) < 1e-3
    host.run(breaker, 1)
    assert breaker.close_window(host.now_ns()).on_ns == 0
    assert not breaker.is_on


def test_what_is_little_over_the_limit_is_attached_once_a_period() -> None:
    host, breaker = _started(LIMIT * 1.25, gated=True)
    host.run(breaker, 10 * PERIOD_S)
    assert host.switches <= 11
    assert abs(breaker.close_window(host.now_ns()).on_ns / (10 * PERIOD_S * 1e9) - CYCLING_PART / 1.25) < 0.05


def test_what_is_under_the_limit_stays_in_cycles_until_it_is_under_what_they_spend() -> None:
    host, breaker = _started(50_000)
    host.run(breaker, 10)
    for rate, is_cycling in ((0.9 * LIMIT, True), (0.9 * SPENT, False), (0.9 * LIMIT, False)):
        host.rate = rate
        host.run(breaker, 5 * PERIOD_S)
        assert breaker.is_cycling == is_cycling


def test_calm_after_a_storm_is_seen_whole() -> None:
    host, breaker = _started(50_000)
    host.run(breaker, 10)
    host.rate = 100
    host.run(breaker, 2 * PERIOD_S + LOOK_S)
    breaker.close_window(host.now_ns())
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    assert not breaker.is_cycling
    assert share.on_ns == share.window_ns


def test_no_window_goes_by_unseen_however_wild_it_gets() -> None:
    host, breaker = _started(1e9)
    for _ in range(3):
        host.run(breaker, 10)
        assert breaker.close_window(host.now_ns()).on_ns > 0


def test_no_limit_is_no_limit() -> None:
    host, breaker = _started(1e9, limit=0)
    assert breaker.tick() is None
    host.run(breaker, 10)
    assert host.switches == 1


def test_programs_are_detached_at_the_end_whether_they_run_or_not() -> None:
    for rate in (1, 1e6):
        host, breaker = _started(rate)
        host.run(breaker, 1)
        breaker.close()
        breaker.close()
        assert not host.is_attached


def test_nothing_seen_stands_for_nothing() -> None:
    assert Share(0, 10).weight == 0.0
    assert Share(5, 10).scaled(np.array([0, 3], np.uint64)).tolist() == [0, 6]
