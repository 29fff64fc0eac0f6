# SPDX-License-Identifier: Apache-2.0
"""What kinds offcpu, runqueue and time cost programs that switch all the time, beside bpftrace doing what offcputime does.

`perf bench sched pipe` hands a byte to and fro between two processes, `messaging` between groups of them. Two measures: by how much they
slow down, which is the whole price and drowns in the noise of a busy machine (sides are run in turn, and the least of their times counts);
and the kernel's own account of the programs of either side, with their dispatches, for each switch, which is stable in noise. With the
breaker, the first two seconds of an agent are measured apart from those that follow.
"""

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.waits import GROUP
from tests.bench.bpf_account import Account, account, own_account, statistics_on
from tests.bench.report import Line, Unit, against, bounded, told
from tests.bench.timing import BenchError, Effort

ROUNDS, BREAKER_ROUNDS = 3, 2
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
    """Share that the breaker must keep to."""
    is_of_machine: bool
    """The share is of all CPUs, and not of the time that one takes."""

    def seconds_a_turn(self, seconds: float, effort: Effort) -> float:
        turns = effort.rows(int(self.two_seconds * seconds / 2))
        return _perf(self.name, [*self.arguments, "-l", str(turns)], turns)


LOADS = (_Load("pipe", (), 350_000, 0.03, is_of_machine=False), _Load("messaging", ("-g", "4"), 800, 0.02, is_of_machine=True))

Side = Callable[[], AbstractContextManager[int]]
"""Gives the process that holds the programs; 0 for none."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """Of one load and side, a value each round."""

    turns_s: list[float] = field(default_factory=list)
    """Seconds a turn."""
    switches_s: list[float] = field(default_factory=list)
    """Cost of a switch by the kernel's account."""


def run(effort: Effort) -> Iterator[Line]:
    """Ours without the breaker, at the default threshold and at 0, and bpftrace; then ours with the breaker."""
    if os.geteuid() != 0:
        raise BenchError("BPF programs need root")
    with tempfile.TemporaryDirectory() as headers:
        sides: dict[str, Side] = {
            "off": lambda: nullcontext(0),
            "on": lambda: _ours(Path(headers), EventSettings(most_per_s=NEVER_REACHED)),
            "threshold 0": lambda: _ours(Path(headers), EventSettings(most_per_s=NEVER_REACHED, threshold_ns=0)),
            "bpftrace": _bpftrace,
        }
        taken = _taken(sides, min(effort.rounds, ROUNDS), effort)
        for load in LOADS:
            yield from _lines(load, {name: taken[load.name, name] for name in sides})
        for load in LOADS:
            yield from _breaker_lines(load, Path(headers), effort)


def _lines(load: _Load, taken: dict[str, _Taken]) -> Iterator[Line]:
    least = {name: min(of_side.turns_s) for name, of_side in taken.items()}
    off = least["off"]
    yield told(f"sched {load.name}, nothing watched, a turn", off, _USEC)
    yield told(f"sched {load.name}, slower by, without breaker, threshold 1 ms", least["on"] / off - 1, PERCENT)
    yield told(f"sched {load.name}, slower by, without breaker, threshold 0", least["threshold 0"] / off - 1, PERCENT)
    yield told(f"sched {load.name}, slower by, bpftrace", least["bpftrace"] / off - 1, PERCENT)
    cost = {name: median(of_side.switches_s) for name, of_side in taken.items() if of_side.switches_s}
    yield told(f"sched {load.name}, a switch by the kernel's account, threshold 0", cost["threshold 0"], _USEC)
    what = f"sched {load.name}, a switch by the kernel's account (stacks: ours of some long waits)"
    yield against(what, cost["on"], ("bpftrace", cost["bpftrace"]), _USEC, 0.5)
    if load.name == "pipe" and least["on"] > off:  # A turn is two switches and two wakeups.
        yield bounded("cost of 10,000 switches a second, of one CPU, by the slow-down", (least["on"] - off) / 2 * 10_000, PERCENT, 0.01)


def _breaker_lines(load: _Load, headers: Path, effort: Effort) -> Iterator[Line]:
    """Off and on alternate: within a round they are minutes of the same machine."""
    taken: dict[str, list[float]] = {"off": [], "first": [], "steady": []}
    shares = []
    for _ in range(min(effort.rounds, BREAKER_ROUNDS)):
        taken["off"].append(load.seconds_a_turn(2, effort))
        with _ours(headers, EventSettings(), settle_s=0):
            taken["first"].append(load.seconds_a_turn(2, effort))
            with statistics_on():
                spent = _Spending()
                taken["steady"].append(load.seconds_a_turn(4, effort))
                shares.append(spent.share(load))
    off, first, steady = (min(times) for times in taken.values())
    yield told(f"sched {load.name} at full speed, slower by, breaker, first two seconds", first / off - 1, PERCENT)
    yield told(f"sched {load.name} at full speed, slower by, breaker, after that", steady / off - 1, PERCENT)
    of = "of the machine, collector included" if load.is_of_machine else "of the time it takes"
    yield bounded(f"sched {load.name} at full speed, breaker, kernel's account, {of}", median(shares), PERCENT, load.most)


class _Spending:
    """What ours takes from now on."""

    def __init__(self) -> None:
        self._began_s, self._account, self._own_s = time.monotonic(), own_account(), time.process_time()

    def share(self, load: _Load) -> float:
        """Of the time that has gone by, on one CPU or on all."""
        past_s = time.monotonic() - self._began_s
        cost_s = own_account().since(self._account).cost_s
        if not load.is_of_machine:
            return cost_s / past_s
        return (cost_s + time.process_time() - self._own_s) / (past_s * (os.cpu_count() or 1))


def _taken(sides: dict[str, Side], rounds: int, effort: Effort) -> dict[tuple[str, str], _Taken]:
    """By load and side; a side is set up once a round."""
    taken = {(load.name, name): _Taken() for load in LOADS for name in sides}
    names = list(sides)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            with sides[name]() as pid:
                for load in LOADS:
                    taken[load.name, name].turns_s.append(load.seconds_a_turn(0.5, effort))
                    if pid:
                        taken[load.name, name].switches_s.append(_counted(load, pid, effort).cost_of_switch_s)
    return taken


def _counted(load: _Load, pid: int, effort: Effort) -> Account:
    with statistics_on():
        before = account(pid)
        load.seconds_a_turn(0.5, effort)
        return account(pid).since(before)


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
def _ours(headers: Path, settings: EventSettings, settle_s: float = SETTLE_S) -> Iterator[int]:
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
        yield os.getpid()


def _tick(suite: Suite, window_s: float, ended: threading.Event) -> None:
    drained_s = time.monotonic()
    while not ended.is_set():
        wait_s = suite.tick()
        ended.wait(window_s if wait_s is None else wait_s)
        if time.monotonic() - drained_s >= window_s:
            suite.drain()
            drained_s = time.monotonic()


@contextmanager
def _bpftrace() -> Iterator[int]:
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
        yield peer.pid  # unshare and sh have become bpftrace.
    finally:
        peer.kill()  # Its maps are not wanted.
        peer.communicate()
