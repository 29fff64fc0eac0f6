# SPDX-License-Identifier: Apache-2.0
"""When to look at young processes again.

What is told of at its exec, and often the first sample too, is still in the loader: libraries are not mapped yet, or the image is not
even whole. A process that lives for a second would be read that once only. So it is looked at again soon, and then more rarely.
"""

import heapq
from collections.abc import Callable

from agent.records.process import ProcessKey

_PAUSES_S = (0.002, 0.01, 0.03, 0.15, 0.6)
LIVED_ON = 3
"""Number of the pause that most short-lived processes do not outlive."""


class Revisits:
    """`now_s` is a clock that never steps back; at most `most` are planned, more are not."""

    def __init__(self, most: int, now_s: Callable[[], float]) -> None:
        self._most = most
        self._now_s = now_s
        self._plan: list[tuple[float, int, int, int, int]] = []

    def plan(self, key: ProcessKey, step: int = 0) -> bool:
        """Look at `key` again after pause number `step`; False when there is no such pause, or too many are planned."""
        if step >= len(_PAUSES_S) or len(self._plan) >= self._most:
            return False
        heapq.heappush(self._plan, (self._now_s() + _PAUSES_S[step], step, key.pid, key.start_boot_ns, key.exec_id))
        return True

    def take_due(self) -> list[tuple[ProcessKey, int]]:
        """Those whose time has come, with the number of their next pause."""
        due: list[tuple[ProcessKey, int]] = []
        now_s = self._now_s()
        while self._plan and self._plan[0][0] <= now_s:
            _, step, pid, start_boot_ns, exec_id = heapq.heappop(self._plan)
            due.append((ProcessKey(pid, start_boot_ns, exec_id), step + 1))
        return due

    def wait_s(self) -> float | None:
        """Seconds until the next is due, 0 when it is already; None when there is none."""
        return max(self._plan[0][0] - self._now_s(), 0.0) if self._plan else None
