# SPDX-License-Identifier: Apache-2.0
"""Of how many connections one is followed: all of them, until there are so many that the host must be spared.

A connection cannot be looked at for a part of the time, because an end that was not seen could not be made up for. So one in so many is
followed from its beginning to its end and stands for the others; the others cost a look-up for each change of their state.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import LOOK_S

FEWEST = 1 << 10
"""One in so many is followed at least."""
_CALM = 0.9
"""Share of the limit below which more are followed again."""

PerCpu = Callable[[], npt.NDArray[np.uint64]]


def one_in(rate: float, most_per_s: float, now: int) -> int:
    """Of how many connections one is to be followed, a power of two; it is one of `now`.

    `rate` is in events a second of the busiest CPU, of all connections.
    """
    wanted = 1
    while wanted < FEWEST and rate > most_per_s * wanted * (1 if wanted >= now else _CALM):
        wanted *= 2
    return wanted


class Following:
    """Call tick() as often as it asks for."""

    def __init__(self, events_per_cpu: PerCpu, follow: Callable[[int], None], most_per_s: int, now_ns: Callable[[], int]) -> None:
        """`follow` is told of how many one is followed from now on; all are at first. `most_per_s` is 0 for no limit."""
        self._events_per_cpu = events_per_cpu
        self._follow = follow
        self._most_per_s = most_per_s
        self._now_ns = now_ns
        self._one_in = 1
        self._looked_ns, self._seen = now_ns(), events_per_cpu()

    def tick(self) -> float | None:
        """Look at the rate. Seconds until it must be called again."""
        if not self._most_per_s:
            return None
        now = self._now_ns()
        past_ns = now - self._looked_ns
        due_ns = int(LOOK_S * 1e9)
        if past_ns < due_ns:
            return (due_ns - past_ns) / 1e9
        seen = self._events_per_cpu()
        rate = float((seen - self._seen).max(initial=0)) * 1e9 / past_ns
        self._looked_ns, self._seen = now, seen
        wanted = one_in(rate, self._most_per_s, self._one_in)
        if wanted != self._one_in:
            self._one_in = wanted
            self._follow(wanted)
        return LOOK_S
