# SPDX-License-Identifier: Apache-2.0
"""What kinds offcpu, runqueue and time cost programs that switch all the time, beside bpftrace doing what offcputime does.

`perf bench sched pipe` hands a byte to and fro between two processes, `messaging` between groups of them: what they slow down by is the
whole price of a switch and its wakeup, dispatch included, on both sides. Sides are run in turn, and the least of their times counts: what
else the machine does only ever adds.
"""

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.waits import GROUP
from tests.bench.report import Line, Unit, against, bounded, told
from tests.bench.timing import BenchError, Effort

PIPE_LOOPS, MESSAGING_LOOPS = 60_000, 60
MS = 1_000_000
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


def run(effort: Effort) -> Iterator[Line]:
    """Ours with the breaker and without, at the default threshold and at 0; bpftrace; and nothing."""
    if os.geteuid() != 0:
        raise BenchError("BPF programs need root")
    with tempfile.TemporaryDirectory() as headers:
        sides: dict[str, Callable[[], AbstractContextManager[object]]] = {
            "off": nullcontext,
            "breaker": lambda: _ours(Path(headers), EventSettings(window_s=2.0)),
            "on": lambda: _ours(Path(headers), EventSettings(most_per_s=0)),
            "threshold 0": lambda: _ours(Path(headers), EventSettings(most_per_s=0, threshold_ns=0)),
            "bpftrace": _bpftrace,
        }
        for what, work in (("sched pipe", _pipe), ("sched messaging", _messaging)):
            least = _least(sides, lambda work=work: work(effort), effort.rounds)
            yield from _lines(what, least)


def _lines(what: str, least: dict[str, float]) -> Iterator[Line]:
    off = least["off"]
    slower = {name: taken / off - 1 for name, taken in least.items()}
    yield told(f"{what}, nothing watched, a turn", off, _USEC)
    most = 0.03 if what == "sched pipe" else 0.02
    yield bounded(f"{what} at full speed, slower by, with the breaker", slower["breaker"], PERCENT, most)
    yield told(f"{what}, slower by, without it, threshold 1 ms", slower["on"], PERCENT)
    yield told(f"{what}, slower by, without it, threshold 0", slower["threshold 0"], PERCENT)
    extra = {name: max(taken - off, 1e-9) for name, taken in least.items()}
    yield against(f"{what}, cost a turn, without the breaker", extra["on"], ("bpftrace", extra["bpftrace"]), _USEC, 0.5)
    if what == "sched pipe":  # a turn is two switches and two wakeups
        yield bounded("cost of 10,000 switches a second, of one CPU", extra["on"] / 2 * 10_000, PERCENT, 0.01)


def _least(sides: dict[str, Callable[[], AbstractContextManager[object]]], work: Callable[[], float], rounds: int) -> dict[str, float]:
    """Least seconds a turn of each side; a side is set up once a round."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            with sides[name]():
                taken[name].append(work())
    return {name: min(times) for name, times in taken.items()}


def _pipe(effort: Effort) -> float:
    return _perf("pipe", ["-l", str(effort.rows(PIPE_LOOPS))], effort.rows(PIPE_LOOPS))


def _messaging(effort: Effort) -> float:
    loops = effort.rows(MESSAGING_LOOPS)
    return _perf("messaging", ["-g", "4", "-l", str(loops)], loops)


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
def _ours(headers: Path, settings: EventSettings) -> Iterator[Suite]:
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
        time.sleep(1.0)  # the breaker has seen what there is
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
