# SPDX-License-Identifier: Apache-2.0
"""What one sample costs the host in the kernel: how much slower a load runs with our sampler, with `perf record -g`, with neither.

Slices of all three take turns on all CPUs. Speed is descents a CPU second of the load: what the samplers' own processes use is not
in it, what the kernel does in the timer is. cost = (1 - speed with / speed without) / rate.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from agent.kernel.program import CpuTimers
from agent.profilers.cpu import CpuProfiler, CpuSettings
from tests.bench.load import Load, loaded
from tests.bench.perf_record import PerfRecord
from tests.bench.report import Line, Unit, against, told
from tests.bench.timing import BenchError, Effort

RATE_HZ = 9973
"""High, so that the cost stands out of the noise, and a prime."""
SLICE_S = 0.2
MOST_S = 180.0
US_PER_SAMPLE = Unit("us/sample", 1e-6, 2)
LEAST_SHARE = 0.9
"""Of the samples that are due; a sampler that drops more than the rest is not compared."""

Switch = Callable[[], None]


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        load = closing.enter_context(loaded(folder, MOST_S))
        ours = _OurSampler(folder)
        closing.callback(ours.close)
        perf = PerfRecord(RATE_HZ, folder, MOST_S)
        closing.callback(perf.close)
        sides: dict[str, tuple[Switch, Switch]] = {
            "none": (lambda: None, lambda: None),
            "ours": (ours.enable, ours.disable),
            "perf": (perf.enable, perf.disable),
        }
        speeds = {name: list[float]() for name in sides}
        for turn in range(8 * effort.rounds):
            names = list(sides)
            for name in names[turn % 3 :] + names[: turn % 3]:
                speeds[name].append(_slice(load, *sides[name]))
        due = RATE_HZ * len(os.sched_getaffinity(0)) * SLICE_S * len(speeds["ours"])
        _check_shares({"ours": ours.samples / due, "perf": perf.stop() / due})
        costs = {name: _cost_s(speeds["none"], speeds[name]) for name in ("ours", "perf")}
        what = f"kernel cost of a sample of 25 frames at {RATE_HZ:,} Hz"
        yield against(what, costs["ours"], ("perf", costs["perf"]), US_PER_SAMPLE, 1.1)
        yield told("of it inside our BPF program, as the kernel measures it", ours.bpf_s_per_sample(), US_PER_SAMPLE)


def _slice(load: Load, enable: Switch, disable: Switch) -> float:
    """Speed of the load with a sampler on."""
    enable()
    before = load.pace()
    time.sleep(SLICE_S)
    speed = load.pace().since(before)
    disable()
    return speed


def _cost_s(without: list[float], beside: list[float]) -> float:
    """Seconds a sample, median over the rounds."""
    return median((1 - slow / fast) / RATE_HZ for fast, slow in zip(without, beside, strict=True))


def _check_shares(shares: dict[str, float]) -> None:
    for name, share in shares.items():
        if share < LEAST_SHARE:
            raise BenchError(f"{name} took only {share:.0%} of the samples that were due")


class _OurSampler:
    """The agent's profiler at rest, and timers of a high rate before its program that come and go."""

    def __init__(self, folder: Path) -> None:
        self._profiler = CpuProfiler.start(CpuSettings(rate_hz=7, header_directory=folder, counts_entries=1 << 15, stacks_entries=1 << 15))
        self._timers = CpuTimers(self._profiler._program.function("on_tick"), 1_000_000_000 // RATE_HZ, time.monotonic_ns)
        self.samples = 0

    def enable(self) -> None:
        """Samples are taken when this returns."""
        self._timers.open_missing()

    def disable(self) -> None:
        """No more samples are taken when this returns, and the maps are empty again, as after a window."""
        self._timers.close()
        self.samples += int(self._profiler.drain().counts.sum())

    def bpf_s_per_sample(self) -> float:
        """Run time of the program, without what the kernel does to get there."""
        return self._profiler.bpf_run_time_ns() / 1e9 / self.samples

    def close(self) -> None:
        """Free everything."""
        self._timers.close()
        self._profiler.close()
