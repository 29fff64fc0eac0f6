# SPDX-License-Identifier: Apache-2.0
"""A CPU leaves and comes back while everything is measured: nothing is made up, and what is lost is counted.

Only in guests of the kernel matrix: a CPU is not taken from a machine that others work on.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.waits import GROUP
from agent.records.event_drain import WindowDrain
from emberwatch.v1 import marks_pb2 as marks
from tests.bpf.test_waits import Seen, assert_sane
from tests.support.kernel import IS_EMULATED, assert_conserved
from tests.support.programs import Programs

SWITCH = Path("/sys/devices/system/cpu/cpu1/online")
CPUS = 2
DEADLINE_S = 120
WINDOW_S = 1.5
"""A timer that was silent for a second is opened again."""


@contextmanager
def cpu_1_away() -> Iterator[None]:
    _turn("0")
    try:
        yield
    finally:
        _turn("1")


def _turn(state: str) -> None:
    """Have the kernel do it; it refuses while another change of CPUs is under way."""
    until = time.monotonic() + DEADLINE_S
    while SWITCH.read_text().strip() != state:
        try:
            SWITCH.write_text(state)
        except OSError:
            assert time.monotonic() < until, f"CPU 1 cannot be turned {state}"
            time.sleep(0.1)


@pytest.mark.skipif(not IS_EMULATED or not SWITCH.exists(), reason="a CPU is taken off line in guests of the kernel matrix only")
def test_a_cpu_that_leaves_and_comes_back(header_directory: Path, programs: Programs) -> None:
    with ExitStack() as closing:
        programs.path("spin")
        settings = CpuSettings(header_directory=header_directory, limit_pids=frozenset({os.getpid()}))  # and what it starts
        suite = Suite.start(settings, EventSettings(threshold_ns=0, most_per_s=0), groups=(GROUP,))
        closing.callback(suite.close)
        assert suite.refusals == {}
        hog, other = (closing.enter_context(programs.running("spin")) for _ in range(2))
        os.sched_setaffinity(other.pid, {0})
        os.sched_setaffinity(hog.pid, {1})
        seen = Seen(hog.pid)
        begun_ns = time.monotonic_ns()
        suite.drain()
        _until_sampled(suite, seen)
        with cpu_1_away():
            # The kernel moves the hog to the CPU that is left, and no tick is due on the other.
            away = _until_sampled(suite, seen)
            assert _most_due(away, 1) >= away.cpu.ticks.expected - away.cpu.ticks.lost.get(marks.LOSS_REASON_TIMER_MISSED, 0)
        os.sched_setaffinity(hog.pid, {1})
        first = len(seen.windows)
        _until_sampled(suite, seen)
        wall_ns = time.monotonic_ns() - begun_ns
    lost = [window.cpu.ticks.lost for window in seen.windows[first:]]
    assert any(marks.LOSS_REASON_CPU_OFFLINE in of_window for of_window in lost), lost
    # All that the hog did adds up to the time that went by, and no more, wherever it did it.
    times = seen.sums("time")
    spent_ns = sum(value for name, value in times.items() if name.endswith("_ns"))
    windows_ns = sum(window.cpu.end_ns - window.cpu.start_ns for window in seen.windows)
    assert windows_ns <= wall_ns
    assert spent_ns == pytest.approx(windows_ns, rel=0.03)
    assert seen.sums("runqueue")["max_ns"] <= windows_ns


def _until_sampled(suite: Suite, seen: Seen) -> WindowDrain:
    """Window after window, each checked, until the hog has samples again (its second window: the first began before)."""
    until = time.monotonic() + DEADLINE_S
    windows = 0
    while time.monotonic() < until:
        time.sleep(WINDOW_S)
        drain = suite.drain()
        assert_conserved(drain.cpu)
        assert_sane(drain)
        assert drain.cpu.ticks.expected <= _most_due(drain, CPUS)
        seen.windows.append(drain)
        windows += 1
        if windows > 1 and (drain.cpu.keys["pid"] == seen.pid).any():
            return drain
    pytest.fail("the hog has no samples")


def _most_due(drain: WindowDrain, cpus: int) -> int:
    """Ticks of so many CPUs in a window. The buffers are flipped a moment after its end was read: after tens of
    milliseconds under emulation."""
    return cpus * ((drain.cpu.end_ns - drain.cpu.start_ns + 200_000_000) // drain.cpu.period_ns)
