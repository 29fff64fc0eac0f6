# SPDX-License-Identifier: Apache-2.0
"""Waits on the real kernel: what is measured against what the program that waited measured itself."""

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings, Group
from agent.profilers.suite import Suite
from agent.profilers.wait_classes import WaitClass
from agent.profilers.waits import GROUP
from agent.records.event_drain import EventDrain, WindowDrain
from tests.support.kernel import before_6_15
from tests.support.programs import Function, Programs

DEADLINE_S = 60
WINDOW_S = 0.3
TOLERANCE = 0.03
"""Of sums; what is lost at the edges of windows is inside."""
SLACK_NS = 5_000_000
"""A switch or two in a busy guest, at both ends of what is measured."""


@dataclass
class Seen:
    """What all windows of a run hold of one process."""

    pid: int
    windows: list[WindowDrain] = field(default_factory=list)

    def sums(self, kind: str, comm: bytes | None = None) -> dict[str, int]:
        """Every column of a kind, added up (the largest of maxima)."""
        sums: defaultdict[str, int] = defaultdict(int)
        for drain, rows in self._rows(kind, comm):
            for column in drain.columns:
                values = column.values[rows]
                if "max" in column.name:
                    sums[column.name] = max(sums[column.name], int(values.max(initial=0)))
                else:
                    sums[column.name] += int(values.sum())
        return dict(sums)

    def classes(self, comm: bytes) -> dict[bytes, int]:
        """Ns waited in each class by a thread."""
        found: defaultdict[bytes, int] = defaultdict(int)
        for drain, rows in self._rows("offcpu", comm):
            assert drain.class_of_row is not None
            ns = next(column.values for column in drain.columns if column.name == "ns")
            for row in np.flatnonzero(rows):
                found[drain.classes[drain.class_of_row[row]]] += int(ns[row])
        return dict(found)

    def ns_below(self, function: Function, comm: bytes, *, kind: str = "offcpu", waker: bool = False) -> int:
        """Ns of waits with a frame of `function` in their user stack, or in that of their waker."""
        total = 0
        for drain, rows in self._rows(kind, comm):
            assert drain.stacks is not None
            ns = next(column.values for column in drain.columns if column.name == "ns")
            keys = drain.seconds if waker else drain.keys
            assert keys is not None
            hashes = keys["user_stack"]
            for row in np.flatnonzero(rows):
                at = int(np.searchsorted(drain.stacks.hashes, hashes[row]))
                if at < len(drain.stacks.hashes) and drain.stacks.hashes[at] == hashes[row]:
                    frames = drain.stacks.addresses[drain.stacks.bounds[at] : drain.stacks.bounds[at + 1]]
                    total += int(ns[row]) * bool(((frames >= function.start) & (frames < function.end)).any())
        return total

    def woken_ns(self, comm: bytes) -> int:
        """Ns of waits that ended, and that the process itself has ended."""
        return sum(
            int(next(column.values for column in drain.columns if column.name == "ns")[rows & (drain.seconds["pid"] == self.pid)].sum())
            for drain, rows in self._rows("offcpu", comm)
            if drain.seconds is not None
        )

    def _rows(self, kind: str, comm: bytes | None) -> Iterator[tuple[EventDrain, np.ndarray[tuple[int], np.dtype[np.bool_]]]]:
        for window in self.windows:
            for drain in window.events:
                if drain.kind == kind:
                    yield drain, (drain.keys["pid"] == self.pid) & ((drain.keys["comm"] == comm) if comm is not None else True)


@contextmanager
def measuring(header_directory: Path, group: Group = GROUP, **settings: float) -> Iterator[Suite]:
    events = EventSettings(**{"window_s": WINDOW_S, "most_per_s": 0, **settings})  # others may switch as often as they like
    with closing(Suite.start(CpuSettings(header_directory=header_directory), events, groups=(group,))) as suite:
        assert suite.refusals == {}
        yield suite


@pytest.fixture(scope="module")
def suite(header_directory: Path) -> Iterator[Suite]:
    """Everything as it is by default; each run is in windows of its own."""
    with measuring(header_directory) as measured:
        yield measured


def run(suite: Suite, programs: Programs, *arguments: str) -> tuple[Seen, dict[str, int]]:
    """Let the program do its waits, window after window; what was seen of it, and what it says itself."""
    with programs.running("waits", *arguments) as process:
        suite.drain()
        assert process.stdin and process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        seen = Seen(process.pid)
        line = _line_of(process, seen, suite)
        seen.windows.append(suite.drain())
    for window in seen.windows:
        assert_sane(window)
    return seen, {name: int(value) for name, _, value in (word.partition("=") for word in line.split())}


def _line_of(process: "subprocess.Popen[str]", seen: Seen, suite: Suite) -> str:
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        window_until = time.monotonic() + WINDOW_S
        while (left_s := window_until - time.monotonic()) > 0:
            tick_s = suite.tick()  # A gate that nobody opens again shuts for good, and what was seen before stands for all.
            time.sleep(left_s if tick_s is None else min(left_s, tick_s))
        seen.windows.append(suite.drain())
        line = process.stdout.readline()
        if line:
            return line
    raise AssertionError("the program has not ended its waits")


def assert_sane(window: WindowDrain) -> None:
    """No time is negative (it would be near 2^64) or longer than the host is up; accounts balance; a window holds no more than it lasts."""
    up_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for drain in window.events:
        for column in drain.columns:
            if column.unit == "ns" and len(drain):
                limit = up_ns if "max" in column.name else up_ns * 1000
                assert int(column.values.max()) <= limit, (drain.kind, column.name)
        stored = int(drain.columns[0].values.sum())
        assert drain.account.expected == stored + drain.account.filtered + sum(drain.account.lost.values())


def assert_waited(seen: Seen, function: Function, wait_class: bytes, truth: dict[str, int]) -> None:
    """All of the wait is there by its class (waits elsewhere may be of it too), and no more of it where it was than it lasted. It has a
    stack but for a moment: a wait that reaches the threshold between the look at the stacks and the end of the window has none up to there.
    """
    runnable_ns = seen.sums("runqueue", b"waits")["ns"]
    where_ns, of_class_ns = seen.ns_below(function, b"waits"), seen.classes(b"waits")[wait_class]
    assert truth["waited_ns"] * (1 - TOLERANCE) - runnable_ns - SLACK_NS <= of_class_ns
    assert 0.5 * truth["waited_ns"] - runnable_ns <= where_ns <= truth["waited_ns"] * (1 + TOLERANCE)


def near(value: int, truth: int) -> bool:
    return abs(value - truth) <= truth * TOLERANCE + SLACK_NS


@pytest.mark.exact
def test_sleeps_are_as_long_as_the_program_says(suite: Suite, programs: Programs) -> None:
    seen, truth = run(suite, programs, "sleeps")
    offcpu, times = seen.sums("offcpu", b"waits"), seen.sums("time")
    assert seen.classes(b"waits")[b"sleep"] > 20 * (10 + 20 + 50) * 1_000_000 * (1 - TOLERANCE)
    assert near(seen.classes(b"waits")[b"sleep"] + times["runnable_ns"], truth["waited_ns"])
    assert near(times["sleep_ns"] + times["runnable_ns"], truth["waited_ns"])
    assert offcpu["max_ns"] < truth["waited_ns"]
    # Those that were open at the end of a window have their stack too.
    nap = programs.functions("waits")["nap"]
    assert seen.ns_below(nap, b"waits") >= 0.8 * seen.classes(b"waits")[b"sleep"]
    # In whole windows, all that a thread does adds up to the time that went by; an entry that was read in the middle of a switch is made
    # good in the next.
    shares = []
    for window in seen.windows[:-1]:
        (drain,) = (drain for drain in window.events if drain.kind == "time")
        rows = drain.keys["pid"] == seen.pid
        total = sum(int(column.values[rows].sum()) for column in drain.columns if column.unit == "ns")
        shares.append(total / (window.cpu.end_ns - window.cpu.start_ns))
    assert median(shares) == pytest.approx(1, abs=0.01)
    assert sum(shares) == pytest.approx(len(shares), rel=TOLERANCE)


@pytest.mark.exact
def test_lock_that_another_thread_holds(suite: Suite, programs: Programs) -> None:
    functions = programs.functions("waits")
    seen, truth = run(suite, programs, "mutex")
    waited_ns = seen.classes(b"waits")[b"lock"]
    runnable_ns = seen.sums("runqueue", b"waits")["ns"]
    assert truth["waited_ns"] * (1 - TOLERANCE) - runnable_ns - SLACK_NS <= waited_ns
    # What was open in take() is all there is of class lock, but for the join at the end.
    assert seen.ns_below(functions["take"], b"waits") <= truth["waited_ns"] * (1 + TOLERANCE)
    assert seen.ns_below(functions["let_go"], b"waits", waker=True) >= 0.7 * seen.woken_ns(b"waits") > 0


@pytest.mark.exact
def test_pipe_reader_waits_for_the_pipe_and_its_writer_wakes_it(suite: Suite, programs: Programs) -> None:
    functions = programs.functions("waits")
    seen, truth = run(suite, programs, "pipes")
    assert_waited(seen, functions["drink"], b"pipe", truth)
    assert seen.ns_below(functions["feed"], b"waits", waker=True) >= 0.8 * seen.woken_ns(b"waits") > 0


def test_who_waits_for_what_and_who_wakes_him_is_known(suite: Suite, programs: Programs) -> None:
    """Under emulation too, where times say nothing."""
    functions = programs.functions("waits")
    seen, _ = run(suite, programs, "pipes")
    assert seen.classes(b"waits")[b"pipe"] > 0
    assert seen.ns_below(functions["drink"], b"waits") > 0
    assert seen.ns_below(functions["feed"], b"waits", waker=True) > 0
    assert seen.sums("runqueue", b"waits")["count"] > 0
    assert seen.sums("time")["pipe_ns"] > 0


@pytest.mark.exact
def test_child_that_is_waited_for(suite: Suite, programs: Programs) -> None:
    seen, truth = run(suite, programs, "children")
    assert_waited(seen, programs.functions("waits")["await"], b"child", truth)


@pytest.mark.exact
def test_file_that_is_not_in_memory_is_waited_for_on_the_disk(header_directory: Path, programs: Programs, tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    with cold.open("wb") as file:
        file.write(os.urandom(1 << 20) * 32)
        os.fsync(file.fileno())
    with measuring(header_directory, threshold_ns=0) as suite:
        seen, truth = run(suite, programs, "cold", str(cold))
    times, waited_ns = seen.sums("time"), seen.classes(b"waits").get(b"disk", 0)
    if not times["disk_ns"]:
        pytest.skip("the disk of this folder is memory")
    assert near(waited_ns, times["disk_ns"])
    assert times["disk_ns"] <= truth["waited_ns"] * (1 + TOLERANCE)
    assert seen.sums("offcpu", b"waits")["uninterruptible_ns"] >= waited_ns * (1 - TOLERANCE)
    assert seen.ns_below(programs.functions("waits")["swallow"], b"waits") >= 0.8 * waited_ns


@pytest.mark.exact
def test_two_on_one_cpu_wait_for_it_half_of_the_time(suite: Suite, programs: Programs) -> None:
    seen, truth = run(suite, programs, "hogs", str(min(os.sched_getaffinity(0))))
    times, runqueue = seen.sums("time"), seen.sums("runqueue", b"waits")
    assert truth["runnable_ns"] > 0.3 * 1_500_000_000
    # A switch is the kernel's for some moments before it is told of; and windows hold what was before and after the program's own measure.
    slack_ns = SLACK_NS + times["switches"] * 50_000
    around_ns = max(0, sum(window.cpu.end_ns - window.cpu.start_ns for window in seen.windows) - truth["wall_ns"])
    for measured_ns in (times["runnable_ns"], runqueue["ns"]):
        assert -slack_ns <= measured_ns - truth["runnable_ns"] * (1 - TOLERANCE)
        assert measured_ns - truth["runnable_ns"] * (1 + TOLERANCE) <= slack_ns + around_ns
    assert runqueue["count"] == sum(value for name, value in runqueue.items() if name.startswith("bucket_"))
    spent_ns = times["cpu_ns"] + times["runnable_ns"] + times["child_ns"]
    assert truth["wall_ns"] * (1 - TOLERANCE) - 10 * SLACK_NS <= spent_ns <= truth["wall_ns"] * (1 + TOLERANCE) + around_ns


def until_it_waits(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Until the program `waits` reads what it is to be sent."""
    until = time.monotonic() + DEADLINE_S
    while "(waits) S" not in Path(f"/proc/{process.pid}/stat").read_text():
        assert time.monotonic() < until, "the program does not wait"
        time.sleep(0.01)


@contextmanager
def asleep_and_measured(header_directory: Path, programs: Programs) -> Iterator[tuple["subprocess.Popen[str]", Suite]]:
    """A program that waited for the first letter that it is sent before it was measured, and does so for a window's time."""
    with programs.running("waits", "sleeps") as process:
        until_it_waits(process)
        with measuring(header_directory) as suite:
            if "bpf_iter__task" not in suite.cpu.instructions():
                pytest.skip("threads cannot be asked, and are not met coming back, before Linux 6.15")
            time.sleep(WINDOW_S)
            yield process, suite


def only_wait(seen: Seen) -> "np.void":
    """Key of the one wait for a pipe there is, as long as it must be at least and can be at most."""
    (window,) = seen.windows
    assert WINDOW_S * 1e9 <= seen.classes(b"waits")[b"pipe"] <= window.cpu.end_ns - window.cpu.start_ns
    (offcpu,) = (drain for drain in window.events if drain.kind == "offcpu")
    (row,) = np.flatnonzero((offcpu.keys["pid"] == seen.pid) & (np.asarray(offcpu.classes)[offcpu.class_of_row] == b"pipe"))
    return offcpu.keys[row]


@pytest.mark.exact
def test_wait_that_began_before_us_has_its_class_and_its_stack(header_directory: Path, programs: Programs) -> None:
    with asleep_and_measured(header_directory, programs) as (process, suite):
        window = suite.drain()
    assert_sane(window)
    seen = Seen(process.pid, [window])
    key = only_wait(seen)
    assert key["user_stack"] != 0
    assert key["kernel_stack"] != 0
    assert seen.sums("time")["threads"] == 1


@pytest.mark.exact
@pytest.mark.parametrize("group", [GROUP, before_6_15(GROUP)], ids=["coming back", "leaving"])
def test_of_very_many_long_waits_some_stand_for_all(header_directory: Path, programs: Programs, group: Group) -> None:
    with measuring(header_directory, group, most_per_s=10_000_000) as suite:  # which nobody reaches
        seen, _ = run(suite, programs, "crowd")
    asleep, times = seen.sums("offcpu", b"sleeper"), seen.sums("time")
    lasted_ns = sum(window.cpu.end_ns - window.cpu.start_ns for window in seen.windows)
    # Some 4 a slot of 17 ms and CPU, more while it doubles up to 2 ms, and what was open at the end of a window.
    assert asleep["observed"] < (lasted_ns / (1 << 24) + 5) * (os.cpu_count() or 1) * 8 + 32 * len(seen.windows)
    assert asleep["count"] > asleep["observed"]
    # Waits are chosen by chance and stand for more or less: five times what n of them are off by. What is not scaled is off by far more.
    assert asleep["ns"] == pytest.approx(times["sleep_ns"], rel=5 / asleep["observed"] ** 0.5)
    assert asleep["max_ns"] >= 2_000_000
    assert seen.ns_below(programs.functions("waits")["nap"], b"sleeper") >= 0.8 * asleep["ns"]


@pytest.mark.exact
def test_numbers_of_32_bit_calls_are_not_taken_for_others(suite: Suite, programs: Programs) -> None:
    if not Path("/proc/sys/abi/vsyscall32").exists():
        pytest.skip("this kernel has no system calls for 32-bit programs")
    seen, truth = run(suite, programs, "old_sleeps")  # nanosleep, which has the number of sync
    assert seen.classes(b"waits")[b"other"] >= 100_000_000
    assert seen.classes(b"waits").get(b"disk", 0) < truth["waited_ns"] / 10


def test_read_of_a_terminal_is_waiting_for_work(suite: Suite, programs: Programs) -> None:
    ours, theirs = os.openpty()
    suite.drain()
    with subprocess.Popen([str(programs.path("waits")), "sleeps"], stdin=theirs, stdout=subprocess.DEVNULL) as process:
        try:
            until_it_waits(process)
            time.sleep(WINDOW_S)  # the wait that is measured
            seen = Seen(process.pid, [suite.drain()])
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)
    assert seen.classes(b"waits")[b"poll"] >= 0.9 * WINDOW_S * 1e9


@pytest.mark.exact
def test_ten_thousand_threads_are_all_measured_in_bounded_memory(header_directory: Path, programs: Programs) -> None:
    with measuring(header_directory) as alone:
        seen, truth = run(alone, programs, "multitude", "10000")
        map_bytes = alone.map_bytes()
    if truth["threads"] < 10_000:
        pytest.skip(f"this host allows a process {truth['threads']} threads")
    times = seen.sums("time")
    assert {reason: count for window in seen.windows for drain in window.events for reason, count in drain.account.lost.items()} == {}
    # What a thread sees of its wait ends as it runs again; its wait for a CPU as it began is not in it.
    assert times["poll_ns"] <= truth["waited_ns"] * (1 + TOLERANCE) + truth["wall_ns"]
    assert times["poll_ns"] + times["runnable_ns"] >= truth["waited_ns"] * (1 - TOLERANCE)
    assert times["switches"] >= 3 * 10_000
    # Of all classes: as they end they wait for the lock of their memory's map too, the longer the busier the host is.
    blocked_ns = sum(times[f"{wait_class.name.lower()}_ns"] for wait_class in WaitClass)
    assert seen.sums("offcpu")["ns"] == pytest.approx(blocked_ns, rel=TOLERANCE)
    assert map_bytes < 128 << 20


@pytest.mark.exact
def test_kernel_looks_away_when_a_cpu_has_seen_enough(header_directory: Path, programs: Programs) -> None:
    most_per_s = 500  # a thousand in the two seconds of a period: the crowd has them in a moment
    with measuring(header_directory, most_per_s=most_per_s, window_s=10.0) as suite, programs.running("waits", "crowd") as process:
        suite.drain()
        assert process.stdin and process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        os.set_blocking(process.stdout.fileno(), False)
        until_s = time.monotonic() + DEADLINE_S
        while not process.stdout.readline() and time.monotonic() < until_s:
            time.sleep(min(suite.tick() or 0, 0.05))
        seen = Seen(process.pid, [suite.drain()])
        assert 0 < suite.limited()["offcpu"].seen < 1
    (window,) = seen.windows
    assert_sane(window)
    lasted_s = (window.cpu.end_ns - window.cpu.start_ns) / 1e9
    assert seen.sums("offcpu")["observed"] <= most_per_s * (lasted_s + 2 * 2) * (os.cpu_count() or 1)
    spent_s = sum(value for name, value in seen.sums("time").items() if name.endswith("_ns")) / 1e9
    assert 0 < spent_s <= 34 * lasted_s  # 32 sleep, one waits for them, and a moment at the edges


@pytest.mark.exact
def test_kernels_where_nobody_is_met_coming_back_take_the_stack_as_a_thread_leaves(header_directory: Path, programs: Programs) -> None:
    functions = programs.functions("waits")
    with measuring(header_directory, before_6_15(GROUP)) as suite:
        hogs, _ = run(suite, programs, "hogs", str(min(os.sched_getaffinity(0))))
        # Before they were put off the CPU they waited to be told to begin.
        waited_ns = hogs.sums("runqueue", b"waits")["ns"]
        assert hogs.ns_below(functions["main"], b"waits", kind="runqueue") >= 0.8 * waited_ns > 0
        seen, truth = run(suite, programs, "pipes")
    assert_waited(seen, functions["drink"], b"pipe", truth)
    assert seen.ns_below(functions["feed"], b"waits", waker=True) >= 0.8 * seen.woken_ns(b"waits") > 0
