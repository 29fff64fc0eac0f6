# SPDX-License-Identifier: Apache-2.0
"""The load that is sampled: load.c once on every CPU, and how fast it runs."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.bench.c_code import compiled
from tests.bench.timing import cpu_s

_COUNTER_WORDS = 8
FLAGS = ("-fno-optimize-sibling-calls", "-fno-ipa-icf")
FRAME_POINTERS, NO_FRAME_POINTERS = "-fno-omit-frame-pointer", "-fomit-frame-pointer"


@dataclass(frozen=True, slots=True)
class Pace:
    """How far the load came: descents of all its processes, and their CPU time."""

    descents: int
    cpu_s: float

    def since(self, before: "Pace") -> float:
        """Descents a CPU second."""
        return (self.descents - before.descents) / (self.cpu_s - before.cpu_s)


@dataclass(frozen=True, slots=True)
class Load:
    """The running load. `counters` is the memory that its processes count in."""

    processes: tuple["subprocess.Popen[bytes]", ...]
    counters: np.memmap

    def pace(self) -> Pace:
        """Now."""
        descents = int(self.counters[::_COUNTER_WORDS].sum())
        return Pace(descents, sum(cpu_s(process.pid) for process in self.processes))


@contextmanager
def loaded(folder: Path, seconds: float, frame_pointers: str = FRAME_POINTERS) -> Iterator[Load]:
    """Keep every CPU busy, for so many seconds at most."""
    program, cpus = compiled("load", folder, *FLAGS, frame_pointers), sorted(os.sched_getaffinity(0))
    path = folder / "counters"
    counters = np.memmap(path, np.uint64, "w+", shape=((max(cpus) + 1) * _COUNTER_WORDS,))
    processes = tuple(subprocess.Popen([program, path, str(cpu), str(seconds)]) for cpu in cpus)
    try:
        yield Load(processes, counters)
    finally:
        for process in processes:
            process.kill()
            process.wait()
