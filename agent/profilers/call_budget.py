# SPDX-License-Identifier: Apache-2.0
"""Keeps the counting of system calls within a share of each CPU, by what a call was measured to cost and how many there are.

    times     each call is counted and timed
    counts    each call is counted; those that begin in a short slice are timed, and stand for the others of their kind
    samples   calls are counted and timed for a part of the time only, and scaled by it

The first of them that the budget has room for. Between the slices and the parts the programs are detached: one that looks away still pays
for being called.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import LOOK_S, PERIOD_S, PERIODS_A_WINDOW, Share

ON_S = 0.05
"""How long calls are looked at at a time, where it is for a part of the time only."""
_CALM = 0.9
"""Share of the budget below which a step that tells more is taken again."""
_LEAST_RUNS = 1000
_LEAST_NS, _MOST_NS = 50.0, 5000.0
"""What is believed of a measured cost: a guest that was held up amid a run says anything."""


class Step(Enum):
    """What is known of each call, the most first."""

    TIMES = "times"
    COUNTS = "counts"
    SAMPLES = "samples"


@dataclass(frozen=True, slots=True)
class CallCosts:
    """CPU time for a call, both ends."""

    counted_ns: float = 180.0
    timed_ns: float = 300.0


@dataclass(frozen=True, slots=True)
class _RunTime:
    ns: int
    runs: int

    def since(self, before: "_RunTime") -> float:
        """Of each run; 0 when there was none."""
        return (self.ns - before.ns) / (self.runs - before.runs) if self.runs > before.runs else 0.0


@dataclass(frozen=True, slots=True)
class _Read:
    calls: _RunTime
    returns: _RunTime


class CallLinks(Protocol):
    """What attaches the two ends of a call."""

    def follow(self, step: Step, is_counted: bool, is_timed: bool) -> None:
        """Attach or detach the end of calls, which counts them, and their start, which times them."""
        ...

    def calls_per_cpu(self) -> npt.NDArray[np.uint64]:
        """Calls counted on each CPU since the start."""
        ...

    def costs(self) -> CallCosts:
        """As far as they were measured."""
        ...


@dataclass(frozen=True, slots=True)
class CallShares:
    """How much of a window calls were counted, and timed."""

    counted: Share
    timed: Share


class CostMeter:
    """Learns what a call costs from the kernel's account of run time, which is kept for a part of the time (run_time.py).

    The account leaves the dispatch of a program out; keeping it adds about as much. Measured from outside, by a getppid loop, a pair took
    300 ns and the account of it said 278; an end alone 170 and 140.
    """

    def __init__(self, run_time_of: Callable[[str], tuple[int, int]]) -> None:
        """`run_time_of` gives nanoseconds and runs of a function, as far as they were measured."""
        self._run_time_of = run_time_of
        self._costs = CallCosts()
        self._seen = self._read()

    def look(self, step: Step) -> CallCosts:
        """What was measured since the last look is of calls followed as `step` says."""
        now = self._read()
        runs = now.returns.runs - self._seen.returns.runs
        if runs < _LEAST_RUNS:
            return self._costs
        return_ns = now.returns.since(self._seen.returns)
        call_ns = now.calls.since(self._seen.calls)
        self._seen = now
        if step is Step.COUNTS:
            self._costs = replace(self._costs, counted_ns=_bounded(return_ns))
        elif call_ns:
            self._costs = replace(self._costs, timed_ns=_bounded(return_ns + call_ns))
        return self._costs

    def _read(self) -> "_Read":
        return _Read(_RunTime(*self._run_time_of("on_call")), _RunTime(*self._run_time_of("on_return")))


class _OnTime:
    """Adds up for how long of a window something was on. It begins on, as the window does."""

    def __init__(self, now_ns: int) -> None:
        self._since_ns: int | None = now_ns
        self._before_ns = 0
        self._start_ns = now_ns

    def switch(self, is_on: bool, now_ns: int) -> None:
        if is_on and self._since_ns is None:
            self._since_ns = now_ns
        elif not is_on and self._since_ns is not None:
            self._before_ns += max(0, now_ns - max(self._start_ns, self._since_ns))
            self._since_ns = None

    def close(self, end_ns: int) -> Share:
        """The window ends; the next begins."""
        on_ns = self._before_ns
        if self._since_ns is not None:
            on_ns += max(0, end_ns - max(self._start_ns, self._since_ns))
        share = Share(min(on_ns, end_ns - self._start_ns), end_ns - self._start_ns)
        self._start_ns, self._before_ns = end_ns, 0
        return share


class CallBudget:
    """Attaches at once. Call tick() as often as it asks for."""

    def __init__(self, links: CallLinks, budget: float, window_s: float, now_ns: Callable[[], int]) -> None:
        """`budget` is of the busiest CPU, 0.01 for a hundredth of it; 0 for no limit."""
        self._links = links
        self._budget = budget
        self._cycle_ns = int(min(PERIOD_S, window_s / PERIODS_A_WINDOW) * 1e9)
        self._now_ns = now_ns
        self._step = Step.TIMES
        self._is_counted = self._is_timed = True
        self._slice_ns = 0
        self._last = CallShares(Share(1, 1), Share(1, 1))
        links.follow(self._step, True, True)
        self._looked_ns, self._seen = now_ns(), links.calls_per_cpu()
        self._again_ns = self._looked_ns + int(LOOK_S * 1e9)
        self._counted, self._timed = _OnTime(self._looked_ns), _OnTime(self._looked_ns)

    @property
    def step(self) -> Step:
        """What is done now."""
        return self._step

    @property
    def last(self) -> CallShares:
        """Of the last whole window; of nothing left out before there was one."""
        return self._last

    def tick(self) -> float | None:
        """Look at the cost, attach or detach. Seconds until it must be called again."""
        if not self._budget:
            return None
        now = self._now_ns()
        if now < self._again_ns:
            return (self._again_ns - now) / 1e9
        if not self._is_counted:
            self._follow(is_counted=True, is_timed=True)
            return self._wait(ON_S)
        past_ns = now - self._looked_ns
        calls = self._links.calls_per_cpu()
        rate = float((calls - self._seen).max(initial=0)) / max(past_ns, 1)  # calls a nanosecond
        self._looked_ns, self._seen = now, calls
        costs = self._links.costs()
        self._step = self._step_for(rate, costs)
        if self._step is Step.TIMES:
            self._follow(is_counted=True, is_timed=True)
            return self._wait(LOOK_S)
        if self._step is Step.COUNTS:
            return self._count(now)
        on_ns = min(past_ns, self._cycle_ns)
        off_ns = min(int(on_ns * (rate * costs.timed_ns / self._budget - 1)), self._cycle_ns - on_ns)
        if off_ns <= 0:
            return self._wait(ON_S)  # between calm and the budget: no moment to look away
        self._follow(is_counted=False, is_timed=False)
        return self._wait(off_ns / 1e9)

    def close_window(self, end_ns: int) -> CallShares:
        """How much of the window that ends now is known."""
        self._last = CallShares(self._counted.close(end_ns), self._timed.close(end_ns))
        return self._last

    def close(self) -> None:
        """Detach for good."""
        self._follow(is_counted=False, is_timed=False)

    def _step_for(self, rate: float, costs: CallCosts) -> Step:
        timed = rate * costs.timed_ns / self._budget
        counted = rate * costs.counted_ns / self._budget
        if timed <= (1 if self._step is Step.TIMES else _CALM):
            return Step.TIMES
        return Step.COUNTS if counted <= (_CALM if self._step is Step.SAMPLES else 1) else Step.SAMPLES

    def _count(self, now: int) -> float:
        """A slice is timed, then none for a whole cycle, however late we are."""
        if self._is_timed:
            self._slice_ns = now + self._cycle_ns
            self._follow(is_counted=True, is_timed=False)
        elif now >= self._slice_ns:
            self._follow(is_counted=True, is_timed=True)
            return self._wait(ON_S)
        return self._wait(min(LOOK_S, (self._slice_ns - now) / 1e9))

    def _wait(self, wait_s: float) -> float:
        self._again_ns = self._now_ns() + int(wait_s * 1e9)
        return wait_s

    def _follow(self, *, is_counted: bool, is_timed: bool) -> None:
        begins = is_counted and not self._is_counted
        self._links.follow(self._step, is_counted, is_timed)
        now = self._now_ns()
        self._counted.switch(is_counted, now)
        self._timed.switch(is_timed, now)
        self._is_counted, self._is_timed = is_counted, is_timed
        if begins:
            self._looked_ns, self._seen = now, self._links.calls_per_cpu()
            self._again_ns = now + int(LOOK_S * 1e9)


def _bounded(cost_ns: float) -> float:
    return min(max(cost_ns, _LEAST_NS), _MOST_NS)
