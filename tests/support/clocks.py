# SPDX-License-Identifier: Apache-2.0
"""Clocks that a test can turn."""

from agent.clock import Clock


class LaptopClock(Clock):
    """Runs when it is told to, and can be suspended: then UTC goes on and CLOCK_MONOTONIC stands still."""

    def __init__(self, monotonic_ns: int, unix_ns: int) -> None:
        self._monotonic_ns = monotonic_ns
        self._unix_ns = unix_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def unix_ns(self) -> int:
        return self._unix_ns

    def run(self, ns: int) -> None:
        self._monotonic_ns += ns
        self._unix_ns += ns

    def suspend(self, ns: int) -> None:
        self._unix_ns += ns
