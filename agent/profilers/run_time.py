# SPDX-License-Identifier: Apache-2.0
"""What the BPF programs cost: the kernel's own measure, taken a tenth of the time, for it adds 75 ns to each run of any program.

on ##__________________##__________________    rate = time measured : time on; between, the last rate goes on
"""

import logging
from collections.abc import Callable

from agent.errors import KernelError

log = logging.getLogger(__name__)

ON_NS = 500_000_000
OFF_NS = 4_500_000_000


class RunTimeMeter:
    """Measures at once, and all the time for those who never call tick()."""

    def __init__(self, enable: Callable[[], Callable[[], None]], read_ns: Callable[[], int], now_ns: Callable[[], int]) -> None:
        """`enable` has the kernel measure until what it returns is called; KernelError when it cannot, and then nothing is measured."""
        self._enable = enable
        self._read_ns = read_ns
        self._now_ns = now_ns
        self._total_ns = 0.0
        self._rate = 0.0
        self._disable: Callable[[], None] | None = None
        self._can_measure = True
        self._switched_ns, self._read_before_ns = now_ns(), read_ns()
        self._switch_on()

    def total_ns(self) -> int:
        """Run time since the start, as far as it was measured or follows from that; 0 when the kernel does not measure."""
        if self._disable is not None:
            return round(self._total_ns) + self._read_ns() - self._read_before_ns
        return round(self._total_ns + self._rate * (self._now_ns() - self._switched_ns))

    def tick(self) -> float | None:
        """Switch when it is time; seconds until the next call, None when there is nothing to switch."""
        if not self._can_measure:
            return None
        past_ns = self._now_ns() - self._switched_ns
        left_ns = (OFF_NS if self._disable is None else ON_NS) - past_ns
        if left_ns > 0:
            return left_ns / 1e9
        if self._disable is None:
            self._total_ns += self._rate * past_ns
            self._switch_on()
            return ON_NS / 1e9
        self._rate = (self._read_ns() - self._read_before_ns) / past_ns
        self._total_ns += self._rate * past_ns
        self.close()
        self._switched_ns = self._now_ns()
        return OFF_NS / 1e9

    def close(self) -> None:
        """Measure no more."""
        if self._disable is not None:
            self._disable()
            self._disable = None

    def _switch_on(self) -> None:
        self._switched_ns, self._read_before_ns = self._now_ns(), self._read_ns()
        try:
            self._disable = self._enable()
        except KernelError as error:
            self._can_measure = False
            log.warning("bpf time unknown reason=%s", error)  # Only the agent's own account is the poorer for it.
