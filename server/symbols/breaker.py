# SPDX-License-Identifier: Apache-2.0
"""Leaves a server alone that fails: after some failures in a row it is not asked for a while, then once, to see."""

from collections.abc import Callable
from dataclasses import dataclass

FAILURES = 5
REST_S = 600.0


@dataclass(slots=True)
class Breaker:
    """The breaker of one server; for one thread."""

    clock: Callable[[], float]
    """Seconds that never go back."""
    failures: int = 0
    _closed_until_s: float = 0.0

    def wait_s(self) -> float:
        """How long until the server may be asked; 0 for now."""
        if self.failures < FAILURES:
            return 0.0
        return max(0.0, self._closed_until_s - self.clock())

    def succeeded(self) -> None:
        """It answered as a server should."""
        self.failures = 0

    def failed(self) -> None:
        """It did not. From the fifth time in a row on each failure begins a rest."""
        self.failures += 1
        if self.failures >= FAILURES:
            self._closed_until_s = self.clock() + REST_S
