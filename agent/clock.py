# SPDX-License-Identifier: Apache-2.0
"""The only place of the agent where monotonic time becomes UTC."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offset:
    """What to add to CLOCK_MONOTONIC to get UTC, as measured at one moment."""

    add_ns: int

    def unix_ns(self, monotonic_ns: int) -> int:
        """UTC of a moment on CLOCK_MONOTONIC, nanoseconds since 1970."""
        return monotonic_ns + self.add_ns


class Clock:
    """The clocks of this machine; a test hands in one that it can turn."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, which BPF calls bpf_ktime_get_ns."""
        return time.monotonic_ns()

    def unix_ns(self) -> int:
        """UTC now."""
        return time.time_ns()

    def offset(self) -> Offset:
        """Measure the offset anew: UTC is stepped and slewed while monotonic time goes on.

        The tightest of three readings between two monotonic ones is taken, so that a preemption does not count.
        """
        best = None
        for _ in range(3):
            before = self.monotonic_ns()
            unix = self.unix_ns()
            after = self.monotonic_ns()
            if best is None or after - before < best[0]:
                best = (after - before, unix - (before + after) // 2)
        assert best is not None
        return Offset(best[1])


def next_boundary_ns(unix_ns: int, window_s: int) -> int:
    """The end of the aligned slot that `unix_ns` lies in; always later than `unix_ns`."""
    slot_ns = window_s * 1_000_000_000
    return (unix_ns // slot_ns + 1) * slot_ns


class Moment:
    """A moment that is waited for: when the wall clock says so, and no later than it seemed to be as the wait began, for that clock may be
    set back meanwhile."""

    def __init__(self, clock: Clock, unix_ns: int) -> None:
        self._clock = clock
        self._unix_ns = unix_ns
        self._monotonic_ns = clock.monotonic_ns() + unix_ns - clock.unix_ns()

    def left_s(self) -> float:
        """Seconds until then; 0 or less when it is over."""
        return min(self._unix_ns - self._clock.unix_ns(), self._monotonic_ns - self._clock.monotonic_ns()) / 1e9
