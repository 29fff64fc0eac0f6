# SPDX-License-Identifier: Apache-2.0
"""What kinds offcpu, runqueue and time cost programs that switch all the time, beside bpftrace doing what offcputime does.

`perf bench sched pipe` hands a byte to and fro between two processes, `messaging` between groups of them: what they slow down by is the
whole price of a switch and its wakeup, dispatch included, on both sides. Sides are run in turn, and the least of their times counts: what
else the machine does only ever adds. With the breaker, the first two seconds of an agent are measured apart from those that follow.
"""

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.waits import GROUP
from tests.bench.report import Line, Unit, against, bounded, told
from tests.bench.timing import BenchError, Effort

ROUNDS, BREAKER_ROUNDS = 5, 4
SETTLE_S = 1.0
NEVER_REACHED = 10_000_000
"""Events a second: the breaker does nothing, while stacks of very many waits are thinned out as ever."""
PERCENT = Unit("%", 0.01, 1)
_USEC = Unit("us", 1e-6, 2)
_OFFCPUTIME = """
tracepoint:sched:sched_switch {
    @start[args->prev_pid] = nsecs; @kernel[args->prev_pid] = kstack(127); @user[args->prev_pid] = ustack(127);
    $start = @start[args->next_pid];
    if ($start) {
        @waited[@kernel[args->next_pid], @user[args->next_pid], args->next_comm] = sum(nsecs - $start);
        delete(@start[args->next_pid]);
    }
}
BEGIN { printf("on\\n"); }
"""
_IN_OWN_NAMESPACE = 'mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec bpftrace -e "$0"'


@dataclass(frozen=True, slots=True)
class _Load:
    """One load of perf bench sched."""

    name: str
    arguments: tuple[str, ...]
    two_seconds: int
    """Turns that take some two seconds."""
    most: float
    """Slow-down that the breaker must keep to."""

    def seconds_a_turn(self, seconds: float, effort: Effort) -> float:
        turns = effort.rows(int(self.two_seconds * seconds / 2))
        return _perf(self.name, [*self.arguments, "-l", str(turns)], turns)


LOADS = (_Load("pipe", (), 350_000, 0.03), _Load("messaging", ("-g", "4"), 800, 0.02))


def run(effort: Effort) -> Iterator[Line]:
    """Ours without the breaker, at the default threshold and at 0, and bpftrace; then ours with the breaker."""
    if os.geteuid() != 0:
        raise BenchError("BPF programs need root")
    with tempfile.TemporaryDirectory() as headers:
        sides: dict[str, Callable[[], AbstractContextManager[object]]] = {
            "off": nullcontext,
            "on": lambda: _ours(Path(headers), EventSettings(most_per_s=NEVER_REACHED)),
            "threshold 0": lambda: _ours(Path(headers), EventSettings(most_per_s=NEVER_REACHED, threshold_ns=0)),
            "bpftrace": _bpftrace,
        }
        least = _least(sides, min(effort.rounds, ROUNDS), effort)
        for load in LOADS:
            yield from _lines(load, least[load.name])
        for load in LOADS:
            yield from _breaker_lines(load, Path(headers), effort)


def _lines(load: _Load, least: dict[str, float]) -> Iterator[Line]:
    off = least["off"]
    yield told(f"sched {load.name}, nothing watched, a turn", off, _USEC)
    yield told(f"sched {load.name}, slower by, without breaker, threshold 1 ms", least["on"] / off - 1, PERCENT)
    yield told(f"sched {load.name}, slower by, without breaker, threshold 0", least["threshold 0"] / off - 1, PERCENT)
    extra = {name: taken - off for name, taken in least.items()}
    if min(extra["on"], extra["bpftrace"]) <= 0:
        yield told(f"sched {load.name}, cost a turn: ours or bpftrace's is less than the noise; bpftrace's", extra["bpftrace"], _USEC)
        return
    what = f"sched {load.name}, cost a turn, without breaker (stacks of long waits sampled, bpftrace's all)"
    yield against(what, extra["on"], ("bpftrace", extra["bpftrace"]), _USEC, 0.5)
    if load.name == "pipe":  # a turn is two switches and two wakeups
        yield bounded("cost of 10,000 switches a second, of one CPU", extra["on"] / 2 * 10_000, PERCENT, 0.01)


def _breaker_lines(load: _Load, headers: Path, effort: Effort) -> Iterator[Line]:
    """Off and on alternate: within a round they are minutes of the same machine."""
    taken: dict[str, list[float]] = {"off": [], "first": [], "steady": []}
    for _ in range(min(effort.rounds, BREAKER_ROUNDS)):
        taken["off"].append(load.seconds_a_turn(2, effort))
        with _ours(headers, EventSettings(), settle_s=0):
            taken["first"].append(load.seconds_a_turn(2, effort))
            taken["steady"].append(load.seconds_a_turn(4, effort))
    off, first, steady = (min(times) for times in taken.values())
    yield told(f"sched {load.name} at full speed, slower by, breaker, first two seconds", first / off - 1, PERCENT)
    yield bounded(f"sched {load.name} at full speed, slower by, breaker, after that", steady / off - 1, PERCENT, load.most)


def _least(sides: dict[str, Callable[[], AbstractContextManager[object]]], rounds: int, effort: Effort) -> dict[str, dict[str, float]]:
    """Least seconds a turn of each load and side; a side is set up once a round."""
    taken: dict[str, dict[str, list[float]]] = {load.name: {name: [] for name in sides} for load in LOADS}
    names = list(sides)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            with sides[name]():
                for load in LOADS:
                    taken[load.name][name].append(load.seconds_a_turn(0.5, effort))
    return {load: {name: min(times) for name, times in of_side.items()} for load, of_side in taken.items()}


def _perf(bench: str, arguments: list[str], turns: int) -> float:
    """Seconds a turn."""
    try:
        answer = subprocess.run(["perf", "bench", "sched", bench, *arguments], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"perf bench sched {bench}: {error}") from error
    found = re.search(r"Total time: ([\d.]+)", answer)
    if not found:
        raise BenchError(f"perf bench sched {bench} said {answer!r}")
    return float(found[1]) / turns


@contextmanager
def _ours(headers: Path, settings: EventSettings, settle_s: float = SETTLE_S) -> Iterator[Suite]:
    """The profiler in this process, ticked and drained as by the agent."""
    ended = threading.Event()
    with ExitStack() as closing:
        suite = Suite.start(CpuSettings(header_directory=headers, rate_hz=49), settings, groups=(GROUP,))
        closing.callback(suite.close)
        if suite.refusals:
            raise BenchError(f"kinds are refused: {suite.refusals}")
        ticking = threading.Thread(target=_tick, args=(suite, settings.window_s, ended))
        ticking.start()
        closing.callback(ticking.join)
        closing.callback(ended.set)
        time.sleep(settle_s)
        yield suite


def _tick(suite: Suite, window_s: float, ended: threading.Event) -> None:
    drained_s = time.monotonic()
    while not ended.is_set():
        wait_s = suite.tick()
        ended.wait(window_s if wait_s is None else wait_s)
        if time.monotonic() - drained_s >= window_s:
            suite.drain()
            drained_s = time.monotonic()


@contextmanager
def _bpftrace() -> Iterator[None]:
    command = ["unshare", "-m", "sh", "-c", _IN_OWN_NAMESPACE, _OFFCPUTIME]
    try:
        peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError as error:
        raise BenchError(f"bpftrace cannot be run: {error.strerror}") from error
    assert peer.stdout
    try:
        while (line := peer.stdout.readline()) != "on\n":
            if not line:
                raise BenchError("bpftrace ended before it was attached")
        yield
    finally:
        peer.kill()  # Its maps are not wanted.
        peer.communicate()
