# SPDX-License-Identifier: Apache-2.0
"""Closes the account of ticks of a window over all CPUs, while CPUs leave and come back.

expected = stored + idle + filtered + sum(lost): what is due comes from the clock and is never less than what was seen, and each
tick that is due and was not seen gets one reason. One that fell into idle time is idle: some hypervisors do not deliver the
timer to a CPU that sleeps.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agent.profilers.ticks import SeenTicks, TickClock
from agent.records.drain import TickAccount
from emberwatch.v1 import marks_pb2 as marks

log = logging.getLogger(__name__)

SILENT_PERIODS = 20
SILENT_NS = 1_000_000_000
"""A timer that is silent for longer than both on a CPU that is online and at work was taken down while the CPU was away."""
IDLE_SLACK_NS = 20_000_000
"""Idle time is kept in steps of 10 ms, and read at both ends of a window."""


class Timers(Protocol):
    """Timers of all CPUs; agent.kernel.timers.CpuTimers."""

    def open_missing(self) -> dict[int, int]: ...
    def forget(self, cpu: int) -> None: ...
    def online(self) -> frozenset[int]: ...


@dataclass(slots=True)
class _Fallen:
    """Ticks that were due and not seen."""

    idle: int = 0
    missed: int = 0
    offline: int = 0


class TickAccounts:
    """The clocks of all CPUs that tick. Opens the timers, and opens them again for CPUs that come back."""

    def __init__(self, timers: Timers, period_ns: int, start_ns: int, read_idle_ns: Callable[[], Mapping[int, int]]) -> None:
        self._timers = timers
        self._period_ns = period_ns
        self._read_idle_ns = read_idle_ns
        self._clocks: dict[int, TickClock] = {}
        self._window_start_ns = start_ns
        self._idle_ns = read_idle_ns()
        self._open()

    def close_window(self, per_cpu: npt.NDArray[np.void], stored: int, end_ns: int) -> TickAccount:
        """`per_cpu` holds TICK_COUNTS of each possible CPU, `stored` is the sum of the drained counts."""
        totals = {name: int(per_cpu[name].sum()) for name in ("stored", "idle", "filtered", "map_full", "map_busy")}
        fallen = self._fallen_away(per_cpu, end_ns)
        self._window_start_ns = end_ns
        idle = totals["idle"] + fallen.idle
        lost = {
            marks.LOSS_REASON_MAP_FULL: totals["map_full"],
            marks.LOSS_REASON_MAP_BUSY: totals["map_busy"],
            marks.LOSS_REASON_TIMER_MISSED: fallen.missed,
            marks.LOSS_REASON_CPU_OFFLINE: fallen.offline,
            marks.LOSS_REASON_UNEXPLAINED: max(totals["stored"] - stored, 0),
        }
        expected = stored + idle + totals["filtered"] + sum(lost.values())
        return TickAccount(expected, idle, totals["filtered"], {reason: number for reason, number in lost.items() if number})

    def _fallen_away(self, per_cpu: npt.NDArray[np.void], end_ns: int) -> _Fallen:
        fallen = _Fallen()
        online = self._timers.online()
        idle_before_ns, self._idle_ns = self._idle_ns, self._read_idle_ns()
        replaced = set()
        for cpu, clock in list(self._clocks.items()):
            seen = seen_ticks(per_cpu[cpu])
            if cpu not in online:  # Nothing is due on a CPU that is away, and when it left is not known: up to its last tick.
                fallen.missed += clock.due(seen, 0) - seen.number
                self._forget(cpu)
                continue
            gap = clock.due(seen, end_ns) - seen.number
            idle = min(gap, self._idle_ticks(self._idle_ns.get(cpu, 0) - idle_before_ns.get(cpu, 0), int(per_cpu[cpu]["idle"])))
            fallen.idle += idle
            if (gap - idle) * self._period_ns > self._silent_limit_ns < clock.silent_ns(seen, end_ns):
                fallen.offline += gap - idle
                self._forget(cpu)
                replaced.add(cpu)
            else:
                fallen.missed += gap - idle
        back = self._open() - replaced
        # When they came back is not known either: they lost all of the window at most.
        fallen.offline += len(back) * ((end_ns - self._window_start_ns) // self._period_ns)
        return fallen

    def _idle_ticks(self, idle_ns: int, seen: int) -> int:
        """Ticks that fit into idle time beside those seen to be idle."""
        return max((idle_ns + IDLE_SLACK_NS) // self._period_ns - seen, 0) if idle_ns > 0 else 0

    @property
    def _silent_limit_ns(self) -> int:
        return max(SILENT_NS, SILENT_PERIODS * self._period_ns)

    def _forget(self, cpu: int) -> None:
        log.warning("cpu timer gone cpu=%d", cpu)
        self._timers.forget(cpu)
        del self._clocks[cpu]

    def _open(self) -> frozenset[int]:
        opened = self._timers.open_missing()
        for cpu, opened_ns in opened.items():
            self._clocks[cpu] = TickClock(opened_ns, self._period_ns)
        return frozenset(opened)


def seen_ticks(counts: np.void) -> SeenTicks:
    """What one CPU saw, of its TICK_COUNTS."""
    number = sum(int(counts[name]) for name in ("stored", "idle", "filtered", "map_full", "map_busy"))
    return SeenTicks(int(counts["first_ns"]), int(counts["last_ns"]), number)
