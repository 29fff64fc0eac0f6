# SPDX-License-Identifier: Apache-2.0
"""Takes times of several sides in turn, so that what disturbs the machine disturbs all of them alike."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Work = Callable[[], object]


class BenchError(Exception):
    """A bench cannot be done: a peer is missing, or did other work than it was asked to."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a run may take: rounds of each measurement, and a factor on the size of the inputs."""

    rounds: int = 7
    size: float = 1.0

    def rows(self, count: int) -> int:
        """So many rows at this size."""
        return max(1, int(count * self.size))


def interleaved(sides: Mapping[str, Work], rounds: int, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Median seconds of CPU of each side. One call of each goes before and is not counted; the order turns from round to round."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(-1, rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = clock()
            sides[name]()
            if turn >= 0:
                taken[name].append(clock() - began)
    return {name: median(times) for name, times in taken.items()}


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process, user and system, to the ns.

    Its clock id is made as in clock_getcpuclockid(3): the complement of the pid, then CPUCLOCK_SCHED.
    """
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e9
