# SPDX-License-Identifier: Apache-2.0
"""Keeps event programs from hurting the host: over a rate they are attached for a part of the time only, in duty cycles.

Time is cut into periods of two seconds, each with a budget of events for a CPU. When a CPU has used it up, the programs are detached until
the period is over, for one that looks away still pays for being called (0.22 us). What was seen is scaled by time at the drain: a window
in which the programs ran for a fifth of the time counts five times.

    rate > limit:   on ##______________##______________##____   on : period = 0.7 limit : rate

A busy host is left more than a calm one: what may be spent in duty cycles is less than what begins them. They end with a period in which
that was not used up.
Programs that have a gate look away at once, without waiting for the collector to see what happens and detach them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

LOOK_S, FIRST_LOOK_S, LEAST_LOOK_S = 0.25, 0.05, 0.02
"""How often it is looked whether the budget is used up: at the least, at the start, at the most."""
PERIOD_S = 2.0
PERIODS_A_WINDOW = 5
"""At least: a window in which nothing was looked at could not be scaled."""
CYCLING_PART = 0.7
"""Of the limit, in duty cycles: at full speed `perf bench sched messaging` costs 2.6 % of two CPUs with all of it, 1.9 % with this."""
_MOST_OVERDRAWN = 2
"""Periods that a rest lasts at most, whatever was used before it could be seen."""


class Links(Protocol):
    """What attaches a group of programs."""

    def attach(self) -> None: ...
    def detach(self) -> None: ...
    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        """Events seen by each CPU since the start."""
        ...


class Gate(Protocol):
    """What lets programs look away by themselves while they are attached."""

    def open(self, most_events: int) -> None:
        """Let every CPU see as many events from now on; 0 for no limit."""
        ...

    def shut_ns(self) -> int:
        """When the first of them had seen as many, and all have looked away since; 0 when none has."""
        ...


class NoGate:
    """Of programs that look until they are detached."""

    def open(self, most_events: int) -> None:
        del most_events

    def shut_ns(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a window the programs ran."""

    on_ns: int
    window_ns: int

    @property
    def is_whole(self) -> bool:
        """They ran all the time."""
        return self.on_ns == self.window_ns

    @property
    def part(self) -> float:
        """Share of the window; 1 of an empty one."""
        return self.on_ns / self.window_ns if self.window_ns else 1.0

    @property
    def weight(self) -> float:
        """What one event stands for; 0 when the programs never ran."""
        return self.window_ns / self.on_ns if self.on_ns else 0.0

    def scaled(self, values: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.uint64]:
        """Sums over the window, estimated from those over the time on; exact when nothing was limited."""
        if self.is_whole:
            return values.astype(np.uint64)
        return np.rint(values.astype(np.float64) * self.weight).astype(np.uint64)


class Breaker:
    """Attaches at once. Call tick() as often as it asks for."""

    def __init__(self, links: Links, most_per_s: int, window_s: float, now_ns: Callable[[], int], gate: Gate | None = None) -> None:
        """`most_per_s` is of the busiest CPU; 0 for no limit."""
        self._links = links
        self._gate = gate or NoGate()
        period_s = min(PERIOD_S, window_s / PERIODS_A_WINDOW)
        self._period_ns = int(period_s * 1e9)
        self._whole_budget = max(1, int(most_per_s * period_s)) if most_per_s else 0
        self._now_ns = now_ns
        self._is_on = self._is_cycling = False
        self._first_look_s = FIRST_LOOK_S
        self._off_until_ns = 0
        self._on_before_ns = 0
        self._duty = 1.0
        self._switch_on()
        self._window_start_ns = self._on_since_ns  # a first window that began before the programs did could not be whole

    @property
    def is_on(self) -> bool:
        """Whether the programs are attached."""
        return self._is_on

    @property
    def is_cycling(self) -> bool:
        """Whether they run for a part of the time only."""
        return self._is_cycling

    @property
    def duty(self) -> float:
        """Share of the last whole window for which the programs ran; 1 before there was one."""
        return self._duty

    @property
    def _budget(self) -> int:
        """Events that a CPU may have in a period."""
        return max(1, int(self._whole_budget * CYCLING_PART)) if self._is_cycling else self._whole_budget

    def tick(self) -> float | None:
        """Attach, or see what was used and detach. Seconds until it must be called again."""
        if not self._whole_budget:
            return None
        now_ns = self._now_ns()
        if not self._is_on:
            if now_ns < self._off_until_ns:
                return (self._off_until_ns - now_ns) / 1e9
            self._switch_on()
            return self._first_look_s
        used, past_ns = self._used(), now_ns - self._period_start_ns
        shut_ns = self._gate.shut_ns()
        if shut_ns or used >= self._budget * max(1.0, past_ns / self._period_ns):
            return self._rest(now_ns, shut_ns or now_ns, used)
        if past_ns < self._period_ns:
            return self._look_s(used, past_ns)
        self._is_cycling = False
        self._first_look_s = LOOK_S
        self._begin_period()
        return LOOK_S

    def close_window(self, end_ns: int) -> Share:
        """How much of the window that ends now the programs ran."""
        start_ns, self._window_start_ns = self._window_start_ns, end_ns
        on_ns, self._on_before_ns = self._on_before_ns, 0
        if self._is_on:
            until_ns = min(self._gate.shut_ns() or end_ns, end_ns)
            on_ns += max(0, until_ns - max(start_ns, self._on_since_ns))
        share = Share(min(on_ns, end_ns - start_ns), end_ns - start_ns)
        self._duty = share.part
        return share

    def close(self) -> None:
        """Detach for good."""
        if self._is_on:
            self._links.detach()
            self._is_on = False

    def _used(self) -> int:
        """Events of the busiest CPU in this period."""
        return int((self._links.events_per_cpu() - self._seen).max(initial=0))

    def _look_s(self, used: int, past_ns: int) -> float:
        """When to look again: as the budget will be used up, if it goes on like that, or the period is over."""
        left_s = (self._budget - used) / used * past_ns / 1e9 if used else self._first_look_s
        return _bounded_s(min(left_s, (self._period_ns - past_ns) / 1e9))

    def _rest(self, now_ns: int, stop_ns: int, used: int) -> float:
        """Detach until the average is what it may be, within bounds. Programs ran until `stop_ns`."""
        self._is_cycling = True
        self._first_look_s = _bounded_s((stop_ns - self._period_start_ns) / 1e9)
        owed_ns = int(self._period_ns * min(max(1.0, used / self._budget), _MOST_OVERDRAWN))
        self._off_until_ns = max(self._period_start_ns + owed_ns, now_ns)
        self._links.detach()
        self._is_on = False
        self._on_before_ns += max(0, stop_ns - max(self._window_start_ns, self._on_since_ns))
        return (self._off_until_ns - now_ns) / 1e9

    def _switch_on(self) -> None:
        self._links.attach()
        self._is_on = True
        self._begin_period()
        self._on_since_ns = self._period_start_ns

    def _begin_period(self) -> None:
        self._seen = self._links.events_per_cpu()
        self._period_start_ns = self._now_ns()
        self._gate.open(self._budget)


def _bounded_s(look_s: float) -> float:
    return min(LOOK_S, max(LEAST_LOOK_S, look_s))
