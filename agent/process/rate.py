# SPDX-License-Identifier: Apache-2.0
"""A budget that fills with time: so much at once, so much a second in the long run."""

from collections.abc import Callable


class RateLimit:
    """`now_s` is a clock that never steps back."""

    def __init__(self, per_s: float, burst: float, now_s: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._now_s = now_s
        self._left = burst
        self._filled_s = now_s()

    def take(self, amount: float = 1, reserve: float = 0) -> bool:
        """Whether there was `amount` left, and `reserve` beyond it for others; if so it is used up."""
        now = self._now_s()
        self._left = min(self._burst, self._left + (now - self._filled_s) * self._per_s)
        self._filled_s = now
        if self._left < amount + reserve:
            return False
        self._left -= amount
        return True

    def charge(self, amount: float) -> None:
        """Use up `amount` whether it is there or not; what is owed fills up first."""
        self._left -= amount
