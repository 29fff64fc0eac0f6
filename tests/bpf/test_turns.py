# SPDX-License-Identifier: Apache-2.0
"""Where the time of threads goes when switches are not traced, on the real kernel: what their end, or the next thread, tells of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.kernel import program as kernel
from agent.profilers.suite import Suite
from agent.profilers.waits import _HOOKS, WaitsProfiler
from tests.bpf.test_waits import DEADLINE_S, WINDOW_S, Seen, asleep_and_measured, measuring, near, only_wait, run, until_it_waits
from tests.support.programs import Programs


def stop_tracing_switches(suite: Suite) -> None:
    """As a kernel does now and then, for a switch or two."""
    profiler = suite._groups[-1][1]
    assert isinstance(profiler, WaitsProfiler)
    kernel.close(profiler._links._links.pop(_HOOKS.index(("sched_switch", "on_switch"))))


@contextmanager
def no_switch_traced(header_directory: Path) -> Iterator[Suite]:
    """What is measured from before programs of the test begin."""
    with measuring(header_directory) as suite:
        if "bpf_iter__task" not in suite.cpu.instructions():
            pytest.skip("who has a CPU is told by switches alone before Linux 6.15")
        stop_tracing_switches(suite)
        yield suite


def times_left(pid: int) -> int:
    """How often it went to sleep."""
    (told,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))
    return int(told.split()[1])


@pytest.mark.exact
def test_wait_is_whole_when_the_switch_that_ends_it_is_not_traced(header_directory: Path, programs: Programs) -> None:
    with asleep_and_measured(header_directory, programs) as (process, suite):
        stop_tracing_switches(suite)
        assert process.stdin
        left = times_left(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        until = time.monotonic() + DEADLINE_S
        while times_left(process.pid) == left:  # When it has slept again it was back.
            assert time.monotonic() < until, "the program does not come back"
            time.sleep(0.01)
        seen = Seen(process.pid, [suite.drain()])
    assert only_wait(seen)["user_stack"] != 0


@pytest.mark.exact
def test_waits_are_whole_when_no_switch_is_traced(header_directory: Path, programs: Programs) -> None:
    with no_switch_traced(header_directory) as suite:
        seen, truth = run(suite, programs, "sleeps")
    asleep, times = seen.sums("offcpu", b"waits"), seen.sums("time")
    napped_ns = seen.ns_below(programs.functions("waits")["nap"], b"waits")
    assert near(napped_ns + times["runnable_ns"], truth["waited_ns"])
    assert asleep["count"] >= 60
    assert times["other_ns"] + times["sleep_ns"] >= napped_ns  # what it waited for is known of waits that reach a window's end
    assert times["cpu_ns"] < 0.1 * truth["waited_ns"]


@pytest.mark.exact
def test_what_a_wait_is_for_is_found_while_it_lasts(header_directory: Path, programs: Programs) -> None:
    # Until it is sent a letter it reads a pipe.
    with no_switch_traced(header_directory) as suite, programs.running("waits", "sleeps") as process:
        until_it_waits(process)
        time.sleep(WINDOW_S)  # the wait that is measured
        seen = Seen(process.pid, [suite.drain()])
    times = seen.sums("time")
    assert seen.classes(b"waits")[b"pipe"] >= WINDOW_S * 1e9 * 0.95
    assert times["pipe_ns"] >= WINDOW_S * 1e9 * 0.95
    assert times["cpu_ns"] < times["pipe_ns"] / 10
