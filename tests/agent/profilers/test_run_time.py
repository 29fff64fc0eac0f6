# SPDX-License-Identifier: Apache-2.0
"""Run time is measured for a tenth of the time and told for all of it."""

from collections.abc import Callable

import pytest

from agent.errors import KernelError
from agent.profilers.run_time import OFF_NS, ON_NS, RunTimeMeter

SECOND_NS = 10**9


class FakeKernel:
    """Programs that run 7 % of the time; counted only while somebody asked for it."""

    def __init__(self) -> None:
        self.now = SECOND_NS
        self.run_time = 0
        self.is_measuring = False
        self.switches = 0

    def enable(self) -> Callable[[], None]:
        self.is_measuring = True
        self.switches += 1
        return self._disable

    def _disable(self) -> None:
        self.is_measuring = False

    def go_on(self, ns: int) -> None:
        self.now += ns
        self.run_time += ns * 7 // 100 if self.is_measuring else 0


def started(kernel: FakeKernel) -> RunTimeMeter:
    return RunTimeMeter(kernel.enable, lambda: kernel.run_time, lambda: kernel.now)


def test_total_goes_on_while_nothing_is_measured() -> None:
    kernel = FakeKernel()
    meter = started(kernel)
    measured_ns, last = 0, 0
    for step in range(1, 1001):
        measured_ns += 100_000_000 * kernel.is_measuring
        kernel.go_on(100_000_000)
        wait_s = meter.tick()
        assert wait_s is not None
        assert wait_s > 0
        assert last <= meter.total_ns() == pytest.approx(step * 7_000_000, rel=0.01)
        last = meter.total_ns()
    assert measured_ns == pytest.approx(100 * SECOND_NS * ON_NS / (ON_NS + OFF_NS), rel=0.1)


def test_without_ticks_all_is_measured() -> None:
    kernel = FakeKernel()
    meter = started(kernel)
    kernel.go_on(100 * SECOND_NS)
    assert meter.total_ns() == 7 * SECOND_NS
    meter.close()
    assert not kernel.is_measuring
    assert kernel.switches == 1


def test_kernel_that_does_not_measure_is_asked_once() -> None:
    def refuse() -> Callable[[], None]:
        raise KernelError("not here")

    meter = RunTimeMeter(refuse, lambda: 0, lambda: 0)
    assert meter.tick() is None
    assert meter.total_ns() == 0
    meter.close()
