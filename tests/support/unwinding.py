# SPDX-License-Identifier: Apache-2.0
"""Stacks of running programs as the agent sees them: profiler, process table and unwinder together, without collector and server."""

import select
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.profilers.cpu import CpuProfiler, CpuSettings
from agent.records.drain import CpuDrain, StackStop
from agent.records.event_drain import WindowDrain
from agent.records.process import Process, ProcessKey
from agent.runner.unwinder import Sources, Unwinder, samples_by_process
from agent.unwind.source import SourceSettings, TableSource

STEP_S = 0.02
DEADLINE_S = 60
QUIET_WINDOWS = 3
START_FILES = frozenset({"_init", "_fini", "frame_dummy", "__do_global_dtors_aux", "register_tm_clones", "deregister_tm_clones"})
"""Code that gcc links into every program and library."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A distinct stack of a process."""

    pid: int
    addresses: tuple[int, ...]
    stop: StackStop
    samples: int
    process: Process


class Observer:
    """Like the agent's main loop, but that it keeps the stacks."""

    def __init__(self, profiler: CpuProfiler, processes: ProcessTable, unwinder: Unwinder | None) -> None:
        self.profiler = profiler
        self.processes = processes
        self.unwinder = unwinder

    def meet_until_tables_are_there(self, pids: Set[int] = frozenset()) -> None:
        """Drop the samples of the time before: it ends when each process was seen at work and nothing unknown turns up any more."""
        until = time.monotonic() + DEADLINE_S
        quiet, seen = 0, set[int]()
        while (quiet < QUIET_WINDOWS or not pids <= seen) and time.monotonic() < until:
            self.meet(0.3)
            walks = self.window()
            is_starting = any(walk.stop in (StackStop.NO_TABLE, StackStop.NO_MAPPING) for walk in walks)
            if is_starting or (self.unwinder is not None and self.unwinder.is_waiting):
                quiet, seen = 0, set[int]()
            else:
                quiet, seen = quiet + 1, seen | {walk.pid for walk in walks}

    def meet(self, seconds: float) -> None:
        meet_all((self,), seconds)

    def catch_up(self) -> None:
        """What the main loop does when it wakes."""
        told = self.profiler.new_processes()
        self.processes.note(told.origins)
        self.processes.expect(told.begun)
        self.processes.update(told.sampled)
        if self.unwinder is not None:
            self.unwinder.catch_up()

    def window(self) -> list[Walk]:
        """End a window; its stacks."""
        whole = self.drain()
        drain = whole.cpu
        samples = samples_by_process(whole)
        self.processes.update(samples)
        walks = list(self._walks(drain))
        self.processes.forget_dead()
        if self.unwinder is not None:
            self.unwinder.end_window(samples)
        return walks

    def drain(self) -> WindowDrain:
        """All kinds of the window that ends."""
        return WindowDrain(self.profiler.drain())

    def _walks(self, drain: CpuDrain) -> Iterator[Walk]:
        for row, count in zip(drain.keys, drain.counts.tolist(), strict=True):
            if not row["user_stack"]:
                continue
            at = int(np.searchsorted(drain.stacks.hashes, row["user_stack"]))
            low, high = drain.stacks.bounds[at : at + 2].tolist()
            key = ProcessKey(int(row["pid"]), int(row["start_boot_ns"]), int(row["exec_id"]))
            stop = StackStop(int(drain.stacks.stops[at]))
            yield Walk(key.pid, tuple(drain.stacks.addresses[low:high].tolist()), stop, count, self.processes.get(key))


def meet_all(observers: Sequence[Observer], seconds: float) -> None:
    """Be their main loop for a time."""
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        young_s = [wait_s for observer in observers if (wait_s := observer.processes.wait_s()) is not None]
        select.select([observer.profiler.wake_fd for observer in observers], [], [], min(left_s, STEP_S, *young_s))
        for observer in observers:
            observer.catch_up()


@contextmanager
def observing(
    header_directory: Path, directory: Path, pids: Sequence[int], *, rate_hz: int = 997, is_unwinding: bool = True
) -> Iterator[Observer]:
    """Sample some process trees."""
    settings = CpuSettings(rate_hz=rate_hz, header_directory=header_directory, limit_pids=frozenset(pids), is_unwinding=is_unwinding)
    with ExitStack() as closing:
        profiler = CpuProfiler.start(settings)
        closing.callback(profiler.close)
        processes = ProcessTable(ProcessSettings())
        closing.callback(processes.close)
        unwinder = None
        if profiler.unwind_maps is not None:
            tables = TableSource(SourceSettings(directory))
            closing.callback(tables.close)
            sources = Sources(processes.get, processes.watch(), processes.open_binary, processes.files_of, tables)
            unwinder = Unwinder(profiler.unwind_maps, sources)
        yield Observer(profiler, processes, unwinder)


class Names:
    """Names of frames: functions of these files by name, their other code "?", code of other files "*", of none "-"."""

    def __init__(self, *files: Path) -> None:
        self._text = {str(file).encode(): _text_symbols(file) for file in files}

    def frames(self, walk: Walk) -> list[str]:
        """Leaf first. Return addresses are looked up one lower."""
        return [self._name(walk.process, addr - (place > 0)) for place, addr in enumerate(walk.addresses)]

    def _name(self, process: Process, addr: int) -> str:
        for mapped in process.mappings:
            mapping = mapped.mapping
            if not mapping.start <= addr < mapping.end:
                continue
            text = self._text.get(mapping.path)
            if text is None or mapped.binary is None:
                return "*"
            segment = next(s for s in mapped.binary.segments if s.offset <= mapping.file_offset < s.offset + s.file_size_bytes)
            at = bisect_right(text, (addr - mapping.start + mapping.file_offset - segment.offset + segment.vaddr, "~")) - 1
            return text[at][1] if at >= 0 and text[at][1] not in START_FILES else "?"
        return "-"


def _text_symbols(file: Path) -> list[tuple[int, str]]:
    listed = subprocess.run(["nm", "--defined-only", str(file)], check=True, capture_output=True, text=True).stdout
    fields = [line.split() for line in listed.splitlines()]
    return sorted((int(f[0], 16), f[2]) for f in fields if len(f) == 3 and f[1] in "tTwW")
