# SPDX-License-Identifier: Apache-2.0
"""Programs run all the time below the limit, in duty cycles above it, and what is seen stands for the whole window."""

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import LONGEST_CYCLE_S, Breaker, Share

LIMIT = 1000


class Host:
    """A clock, and programs that see `rate` events a second on the second CPU, half on the first, while they are attached."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
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
            step_s = min(until_s - self.now_s, 1.0 if wait_s is None else wait_s + 0.001)
            self.now_s += step_s
            self.events += self.rate * step_s * self.is_attached


def _started(rate: float, limit: int = LIMIT) -> tuple[Host, Breaker]:
    host = Host(rate)
    return host, Breaker(host, limit, 10.0, host.now_ns)


def test_below_the_limit_everything_is_seen() -> None:
    host, breaker = _started(900)
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    assert (host.switches, share.on_ns, breaker.is_cycling) == (1, share.window_ns, False)
    assert share.scaled(np.array([7], np.uint32)).tolist() == [7]


def test_over_the_limit_the_busiest_cpu_pays_for_the_limit_and_no_more() -> None:
    host, breaker = _started(10_000)
    host.run(breaker, 10)
    breaker.close_window(host.now_ns())
    before = host.events
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    seen = host.events - before
    # A cycle more or less at the edge: at most one share of 50 ms in 10 s.
    assert abs(seen / 10 - LIMIT) < LIMIT * 0.1
    assert breaker.is_cycling
    assert abs(int(share.scaled(np.array([round(seen)], np.uint64))[0]) - 100_000) < 2_000


def test_calm_after_a_storm_is_seen_whole() -> None:
    host, breaker = _started(50_000)
    host.run(breaker, 10)
    host.rate = 100
    host.run(breaker, 2 * LONGEST_CYCLE_S)
    breaker.close_window(host.now_ns())
    host.run(breaker, 10)
    share = breaker.close_window(host.now_ns())
    assert not breaker.is_cycling
    assert share.on_ns == share.window_ns


def test_between_calm_and_the_limit_programs_stay_attached() -> None:
    host, breaker = _started(10_000)
    host.run(breaker, 1)
    assert breaker.is_cycling
    host.rate = LIMIT * 0.95
    host.run(breaker, LONGEST_CYCLE_S)
    before = host.switches
    host.run(breaker, 5)
    assert breaker.is_cycling
    assert host.switches == before


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
