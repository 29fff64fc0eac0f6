# SPDX-License-Identifier: Apache-2.0
"""The account of timer ticks: how many were due by the clock, and where they went.

The timer of a CPU fires on a grid: phase, phase + period, …; a tick that comes late does not move the grid, and one so late that
the next is due swallows it (hrtimer_forward_now, kernel/events/core.c). So the number of ticks due between two moments follows
from the clock alone, and due minus seen is what the timer missed.

    open   due    due    due    due    due
     |------|------|------|------|------|---> time
            x      x             x              3 seen of 5 due: 1 missed so far, the last may be on its way
"""

from dataclasses import dataclass

import numpy as np

TICK_COUNTS = np.dtype(
    [(name, "<u8") for name in ("first_ns", "last_ns", "stored", "idle", "filtered", "map_full", "map_busy", "stack_map_full", "seen_full")]
)
"""Counters of one CPU and one buffer; struct tick_counts in bpf/cpu.bpf.c."""

LATE_SHARE = 4
"""A tick may come a quarter of a period earlier on the grid than the first one did, which was late itself."""


@dataclass(frozen=True, slots=True)
class SeenTicks:
    """What a CPU saw in a window. Times are 0 when it saw nothing."""

    first_ns: int
    last_ns: int
    number: int


class TickClock:
    """The grid of one CPU's timer, from the moment it was opened."""

    def __init__(self, opened_ns: int, period_ns: int) -> None:
        self._period_ns = period_ns
        self._phase_ns = opened_ns
        self._has_phase = False
        self._accounted = 0
        self._last_ns = opened_ns

    def due(self, seen: SeenTicks, now_ns: int) -> int:
        """Ticks due since the last call; at least those seen. The sum over calls is exact, a single call may be one off.

        A tick counts as due when it, or a later one, was seen, or when it is overdue by more than a period: one just
        due may still arrive, and then belongs to the next window.
        """
        end = self._accounted
        if seen.number:
            self._learn_phase(seen.first_ns)
            self._last_ns = seen.last_ns
            end = max(end, self._index(seen.last_ns))
        end = max(end, (now_ns - self._phase_ns) // self._period_ns - 1, self._accounted + seen.number)
        due = end - self._accounted
        self._accounted = end
        return due

    def silent_ns(self, seen: SeenTicks, now_ns: int) -> int:
        """How long ago the last tick was seen, or the timer opened."""
        return now_ns - max(self._last_ns, seen.last_ns)

    def _learn_phase(self, first_ns: int) -> None:
        """The first tick ever seen fixes the grid; ticks that were due between opening and it count."""
        if not self._has_phase:
            index = max(1, (first_ns - self._phase_ns + self._period_ns // 2) // self._period_ns)
            self._phase_ns = first_ns - index * self._period_ns
            self._has_phase = True

    def _index(self, at_ns: int) -> int:
        return (at_ns - self._phase_ns + self._period_ns // LATE_SHARE) // self._period_ns
