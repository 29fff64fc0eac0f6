# SPDX-License-Identifier: Apache-2.0
"""What watching system calls, locks and TCP costs those who make them, beside bpftrace and `perf trace -s`.

Sides take turns; each is on while slices of a loop run, and the fastest slice of each counts: what disturbs the machine only slows. The
cost of a side is the CPU time of each call (hand-over of a lock, connection) less that with nobody watching. What TCP costs a stream is too
little for that: runs with and without it alternate, and the median of their ratios counts.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from statistics import median

from agent.kernel.program import KernelSymbols
from agent.profilers import locks, syscall, tcp
from agent.profilers.call_budget import Step
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventHost, EventProfiler, EventSettings
from agent.profilers.locks import LockProfiler
from agent.profilers.suite import Suite
from agent.profilers.syscall import SyscallProfiler
from agent.profilers.tcp import TcpProfiler
from tests.bench.c_code import compiled
from tests.bench.report import Line, Unit, against, bounded, told
from tests.bench.timing import BenchError, Effort

NS = Unit("ns", 1, 0)
US = Unit("us", 1000, 2)
PER_CENT = Unit("%", 0.01, 2)
CALLS, HANDOVERS, CONNECTIONS, MEBIBYTES = 100_000, 5_000, 1_000, 32
PAIRS = 60
"""Of a stream that is watched and one that is not."""
SLICES = 9
"""Of a side in a turn: short ones, so that some meet a quiet moment."""
STATES_OF_A_CONNECTION = 10
"""Both ends: SYN_SENT, ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE and SYN_RECV, ESTABLISHED, CLOSE_WAIT, LAST_ACK, CLOSE."""
LATENCIES = (
    "tracepoint:raw_syscalls:sys_enter { @start[tid] = nsecs; } "
    "tracepoint:raw_syscalls:sys_exit /@start[tid]/ { @ns[pid, args->id] = hist(nsecs - @start[tid]); delete(@start[tid]); }"
)
COUNTS = "tracepoint:raw_syscalls:sys_exit { @calls[pid, args->id] = count(); }"
FUTEX_LATENCIES = (
    "tracepoint:syscalls:sys_enter_futex { @start[tid] = nsecs; @lock[tid] = args->uaddr; } "
    "tracepoint:syscalls:sys_exit_futex /@start[tid]/ { @ns[pid, @lock[tid]] = hist(nsecs - @start[tid]); delete(@start[tid]); }"
)
_READY_S = 30.0
_IN_TRACEFS = 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"'

Watch = Callable[[], AbstractContextManager[object]]


class Load:
    """The loop, in a process of its own."""

    def __init__(self, program: Path, what: str) -> None:
        self._process = subprocess.Popen([program, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    def slice_ns(self, count: int) -> float:
        """Nanoseconds for each of so many."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        program = compiled("calls_load", folder, "-pthread")
        suite = Suite.start(
            CpuSettings(header_directory=folder), EventSettings(most_per_s=0), groups=(locks.GROUP, syscall.GROUP, tcp.GROUP)
        )
        closing.callback(suite.close)
        if suite.refusals:
            raise BenchError(f"not all kinds run here: {suite.refusals}")
        for _group, profiler in suite._groups:
            profiler.close()
        suite.cpu._run_time.close()  # as for nine tenths of the time: measuring adds 75 ns to each run of anybody's program
        host = EventHost(suite.cpu._program, EventSettings(most_per_s=0), time.monotonic_ns, KernelSymbols(folder))
        yield from _calls(host, _load(program, "calls", closing), effort)
        yield from _locks(host, _load(program, "locks", closing), effort)
        yield from _connections(host, program, closing, effort)


def _load(program: Path, what: str, closing: ExitStack) -> Load:
    load = Load(program, what)
    closing.callback(load.close)
    return load


def _calls(host: EventHost, load: Load, effort: Effort) -> Iterator[Line]:
    sides: dict[str, Watch] = {
        "nobody": _nobody,
        "ours": lambda: _watching(lambda: SyscallProfiler.start(host)),
        "our counts": lambda: _counting(host),
        "bpftrace": lambda: _bpftrace(LATENCIES),
        "bpftrace counts": lambda: _bpftrace(COUNTS),
        "perf trace -s": lambda: _perf_trace(load.pid),
    }
    fastest = _fastest(sides, lambda: load.slice_ns(effort.rows(CALLS)), effort)
    cost = {name: ns - fastest["nobody"] for name, ns in fastest.items()}
    yield against("latency of each system call by service and call, cost a call", cost["ours"], ("bpftrace", cost["bpftrace"]), NS, 0.75)
    yield against("counts alone, cost a call", cost["our counts"], ("bpftrace", cost["bpftrace counts"]), NS, 1.0)
    yield against("slow-down of a getppid loop", cost["ours"], ("perf trace -s", cost["perf trace -s"]), NS, 1 / 3)


def _locks(host: EventHost, load: Load, effort: Effort) -> Iterator[Line]:
    """Two waits and two wake-ups each, on one CPU."""
    os.sched_setaffinity(load.pid, {min(os.sched_getaffinity(0))})
    sides: dict[str, Watch] = {
        "nobody": _nobody,
        "ours": lambda: _watching(lambda: LockProfiler.start(host)),
        "bpftrace": lambda: _bpftrace(FUTEX_LATENCIES),
        "perf trace -s": lambda: _perf_trace(load.pid),
    }
    fastest = _fastest(sides, lambda: load.slice_ns(effort.rows(HANDOVERS)), effort)
    cost = {name: (ns - fastest["nobody"]) / 2 for name, ns in fastest.items()}
    yield told("hand-over of a contended lock, nobody watching", fastest["nobody"] / 2, NS)
    yield against("waits for a lock with their holder, cost a wait", cost["ours"], ("bpftrace", cost["bpftrace"]), NS, 1.0)
    yield against("slow-down of a contended lock", cost["ours"], ("perf trace -s", cost["perf trace -s"]), NS, 1 / 3)


def _connections(host: EventHost, program: Path, closing: ExitStack, effort: Effort) -> Iterator[Line]:
    watch: Watch = lambda: _watching(lambda: TcpProfiler.start(host))  # noqa: E731
    load = _load(program, "connections", closing)
    fastest = _fastest({"nobody": _nobody, "ours": watch}, lambda: load.slice_ns(effort.rows(CONNECTIONS)), effort)
    state_ns = (fastest["ours"] - fastest["nobody"]) / STATES_OF_A_CONNECTION
    yield bounded("TCP, cost of a change of state", state_ns, US, 1000)
    load = _load(program, "mebibytes", closing)
    os.sched_setaffinity(load.pid, {min(os.sched_getaffinity(0))})  # both ends on one CPU: where they run is half of the noise
    ratio = _median_ratio(watch, lambda: load.slice_ns(MEBIBYTES), effort.rows(PAIRS))
    yield bounded("TCP, more CPU for a mebibyte over loopback, median of pairs", ratio - 1, PER_CENT, 0.01)


def _median_ratio(watch: Watch, slice_ns: Callable[[], float], pairs: int) -> float:
    """Of runs that are watched to their neighbours that are not; which comes first alternates, so that a drift cancels out."""
    ratios = []
    for turn in range(max(20, pairs)):
        taken = {}
        for side in ("nobody", "ours") if turn % 2 else ("ours", "nobody"):
            with watch() if side == "ours" else _nobody():
                slice_ns()  # not counted: to begin to watch has pushed everything out of the caches
                taken[side] = min(slice_ns() for _ in range(3))
        ratios.append(taken["ours"] / taken["nobody"])
    return median(ratios)


def _fastest(sides: Mapping[str, Watch], slice_ns: Callable[[], float], effort: Effort) -> dict[str, float]:
    """The fastest slice of each side."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(max(3, effort.rounds)):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            with sides[name]():
                slice_ns()  # not counted: caches fill
                found[name].append(min(slice_ns() for _ in range(SLICES)))
    return {name: min(times) for name, times in found.items()}


@contextmanager
def _nobody() -> Iterator[None]:
    yield


@contextmanager
def _watching(start: Callable[[], EventProfiler]) -> Iterator[None]:
    profiler = start()
    try:
        yield
    finally:
        profiler.close()


@contextmanager
def _counting(host: EventHost) -> Iterator[None]:
    """As when the budget has room for no more."""
    profiler = SyscallProfiler.start(host)
    try:
        profiler._links.follow(Step.COUNTS, is_counted=True, is_timed=False)
        yield
    finally:
        profiler.close()


def _bpftrace(script: str) -> AbstractContextManager[None]:
    return _peer(["bpftrace", "-e", f'{script} BEGIN {{ printf("on\\n"); }}'], "bpftrace", _first_line)


def _perf_trace(pid: int) -> AbstractContextManager[None]:
    return _peer(["perf", "trace", "-s", "-p", str(pid)], "linux-perf", lambda _: time.sleep(2))


@contextmanager
def _peer(command: list[str], package: str, until_ready: Callable[["subprocess.Popen[str]"], object]) -> Iterator[None]:
    """Another's tool at work, in a mount namespace with the file system it needs."""
    if shutil.which(command[0]) is None:
        raise BenchError(f"{command[0]} is not installed (apt-get install {package})")
    pipe = subprocess.PIPE
    wrapped = ["unshare", "--mount", "sh", "-c", _IN_TRACEFS, "sh", *command]
    process = subprocess.Popen(wrapped, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    try:
        until_ready(process)
        if process.poll() is not None:
            raise BenchError(f"{command[0]} ended with status {process.returncode}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _first_line(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if line == "on\n":
            return
