# SPDX-License-Identifier: Apache-2.0
"""What unwinding by tables costs: nanoseconds a sample and frame, and the CPU and bytes of `perf record --call-graph dwarf` beside it.

The load has no frame pointers. The first part takes the load's slow-down at a high rate, so that what the kernel does to get to the
program is in it; BPF's own run time leaves that out and stands beside it. perf's samples are taken likewise, each with its copy of 8 KiB of
stack. The second part takes 99 Hz, and the whole system in its steady state: the agent's processes, or perf recording and `perf script`,
which is where perf unwinds, and to either what its samples cost in the kernel. What the agent spends once (start, tables) stands on
a line of its own. `perf script` is run twice: with --no-inline, so that unwinding stands beside unwinding, and as it is typed, which finds
inlined calls too, as our server does: its CPU is added on our side then.
"""

import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

from agent.kernel.program import CpuTimers
from tests.bench.agent import Agent, until_boundary
from tests.bench.load import NO_FRAME_POINTERS, Load, loaded
from tests.bench.perf_record import PerfRecord
from tests.bench.report import MIB, PER_CENT, SECONDS, Line, Unit, against, bounded, reached, told
from tests.bench.timing import BenchError, Effort, cpu_s
from tests.support.servers import serving
from tests.support.unwinding import observing

RATE_HZ, PERF_RATE_HZ, AGENT_RATE_HZ = 9973, 997, 99
SLICE_S, MOST_S = 0.2, 240.0
US, NS = Unit("us/sample", 1e-6, 2), Unit("ns/frame", 1e-9, 0)
WHOLE_SHARE = 0.995
PERF_S, SCRIPT_MOST_S = 10, 60
SETTLE_WINDOWS = 7
"""In which the first server of a fleet asks for the symbols of each file: once, and told apart."""


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        load = closing.enter_context(loaded(folder, MOST_S, NO_FRAME_POINTERS))
        cost, lines = _our_cost(load, folder, 8 * effort.rounds)
        yield from lines
        perf_cost = _perf_cost(load, folder, 8 * effort.rounds)
        yield against("kernel cost of a sample, perf's with its copy of the stack", cost, ("perf", perf_cost), US, None)
        yield from _perf_lines(load, folder, (cost, perf_cost), windows=3 if effort.size >= 1 else 1)


def _our_cost(load: Load, folder: Path, rounds: int) -> tuple[float, list[Line]]:
    """Seconds of a sample in the kernel, and what is told of it."""
    with observing(folder, folder, [process.pid for process in load.processes], rate_hz=7) as observer:
        timers = CpuTimers(observer.profiler._program.function("on_tick"), 1_000_000_000 // RATE_HZ, time.monotonic_ns)
        timers.open_missing()
        observer.meet_until_tables_are_there()
        timers.close()
        observer.window()
        bpf_began_ns = observer.profiler.bpf_run_time_ns()
        samples = frames = whole = 0
        costs = []
        for _ in range(rounds):
            fast = _pace(load)
            timers.open_missing()
            slow = _pace(load)
            timers.close()
            costs.append((1 - slow / fast) / RATE_HZ)
            for walk in observer.window():
                samples += walk.samples
                frames += walk.samples * len(walk.addresses)
                whole += walk.samples * (walk.stop.name == "BOTTOM")
        bpf_s = (observer.profiler.bpf_run_time_ns() - bpf_began_ns) / 1e9 / samples
    length = frames / samples
    cost = median(costs)
    return cost, [
        told(f"kernel cost of a sample of {length:.0f} frames without frame pointers, {RATE_HZ:,} Hz", cost, US),
        told("of it inside our BPF programs, as the kernel measures it", bpf_s, US),
        told("of it the timer's interrupt and the call of a program, which every sampler pays", cost - bpf_s, US),
        told("the same for a frame: the whole cost, and BPF alone", cost / length, NS, NS.text(bpf_s / length)),
        reached("samples that reach the bottom", whole / samples, PER_CENT, WHOLE_SHARE),
    ]


def _perf_cost(load: Load, folder: Path, rounds: int) -> float:
    """Seconds of a sample of perf in the kernel: what its processes use is not in it."""
    perf = PerfRecord(PERF_RATE_HZ, folder, MOST_S, "dwarf")
    costs = []
    try:
        for _ in range(rounds):
            fast = _pace(load)
            perf.enable()
            slow = _pace(load)
            perf.disable()
            costs.append((1 - slow / fast) / PERF_RATE_HZ)
    finally:
        perf.close()
    return median(costs)


def _pace(load: Load) -> float:
    before = load.pace()
    time.sleep(SLICE_S)
    return load.pace().since(before)


def _perf_lines(load: Load, folder: Path, costs: tuple[float, float], windows: int) -> Iterator[Line]:
    cpus = len(load.processes)
    with ExitStack() as closing:
        server = closing.enter_context(serving(folder / "server"))
        agent = Agent(folder, server, "--kinds", "cpu")
        closing.callback(agent.close)
        until_boundary(SETTLE_WINDOWS if windows > 1 else 2)
        before_s, server_before_s, began_s = cpu_s(agent.pid), cpu_s(server.process.pid), time.monotonic()
        until_boundary(windows)
        seconds = (time.monotonic() - began_s) * cpus
        ours, kernel = (cpu_s(agent.pid) - before_s) / seconds, costs[0] * AGENT_RATE_HZ
        with_server = ours + kernel + (cpu_s(server.process.pid) - server_before_s) / seconds
        written = sum(path.stat().st_size for path in (folder / "server").rglob("*") if path.is_file()) / (time.monotonic() - began_s + 20)
        lately = {"query": 'cpu{service="load"}', "from": f"-{windows * 10 + 5}s"}
        whole = server.get("flamegraph", **lately)["quality"]["whole_share"]
    record_s, script_s, plain_s, their_bytes = _perf_dwarf(folder)
    perf, plain = ((record_s + each) / PERF_S / cpus + costs[1] * AGENT_RATE_HZ for each in (script_s, plain_s))
    yield told("agent CPU from its start to its steady state, once, in all", before_s, SECONDS)
    told_apart = f"processes {PER_CENT.text(ours)}, kernel {PER_CENT.text(kernel)}"
    yield bounded(f"agent, whole system, of a core per busy core, 99 Hz: {told_apart}", ours + kernel, PER_CENT, 0.005)
    yield against(
        "the same beside perf record --call-graph dwarf, perf script --no-inline", ours + kernel, ("perf", perf), PER_CENT, 1 / 20
    )
    yield against("with the server's CPU beside perf script as typed, inlined calls and all", with_server, ("perf", plain), PER_CENT, None)
    yield against("bytes a second: server's files, names included; perf.data", written, ("perf", their_bytes / PERF_S), MIB, None)
    yield reached("whole stacks of the load, as the page shows it", float(whole), PER_CENT, WHOLE_SHARE)


def _perf_dwarf(folder: Path) -> tuple[float, float, float, int]:
    """CPU seconds of perf for PERF_S of recording, of unwinding it, and of unwinding with inlined calls; bytes written."""
    data = folder / "dwarf.data"
    before = _children_s()
    record = ["perf", "record", "-F", str(AGENT_RATE_HZ), "-a", "--call-graph", "dwarf", "-o", str(data), "--", "sleep", str(PERF_S)]
    done = subprocess.run(record, capture_output=True, check=False)
    if done.returncode or not re.search(rb"\((\d+) samples\)", done.stderr):
        raise BenchError(f"perf record failed: {done.stderr.decode(errors='replace')[-300:]}")
    times_s = [before, _children_s()]
    for options in (["--no-inline"], []):
        command = ["perf", "script", *options, "-i", str(data)]
        with suppress(subprocess.TimeoutExpired):  # What it took until then counts: perf comes off better than it is.
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=SCRIPT_MOST_S)
        times_s.append(_children_s())
    record_s, script_s, plain_s = (after - earlier for earlier, after in pairwise(times_s))
    return record_s, script_s, plain_s, data.stat().st_size


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
