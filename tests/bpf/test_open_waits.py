# SPDX-License-Identifier: Apache-2.0
"""Stacks of threads that sleep as a window ends: read as far as they are in memory, and nobody is waited for."""

import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.waits import GROUP, WaitsProfiler
from agent.records.drain import StackStop
from agent.records.event_drain import EventDrain, WindowDrain
from agent.runner.unwinder import Sources, Unwinder
from agent.unwind.source import SourceSettings, TableSource
from tests.support.kernel import before_6_15
from tests.support.programs import Programs
from tests.support.silent_files import silent_file
from tests.support.unwinding import Observer

DEADLINE_S = 60
WINDOW_S = 0.3


class WaitObserver(Observer):
    """The main loop of an agent that profiles waits, without collector and server."""

    suite: Suite
    waits: EventDrain
    """Kind offcpu of the last window."""

    def drain(self) -> WindowDrain:
        drain = self.suite.drain()
        self.waits = next(found for found in drain.events if found.kind == "offcpu")
        return drain

    def stack_of(self, pid: int) -> tuple[list[int], StackStop]:
        """The user stack of the thread of a process that waits, and why it ends."""
        stacks = self.waits.stacks
        rows = np.flatnonzero(self.waits.keys["pid"] == pid)
        if not len(rows) or stacks is None:
            return [], StackStop.NONE
        wanted = self.waits.keys["user_stack"][rows[0]]
        at = int(np.searchsorted(stacks.hashes, wanted))
        if at == len(stacks.hashes) or stacks.hashes[at] != wanted:
            return [], StackStop.NONE
        return stacks.addresses[stacks.bounds[at] : stacks.bounds[at + 1]].tolist(), StackStop(int(stacks.stops[at]))


def observer_of(ending: ExitStack, header_directory: Path, directory: Path, pids: frozenset[int]) -> WaitObserver:
    cpu = CpuSettings(rate_hz=97, header_directory=header_directory, limit_pids=pids, is_unwinding=True)
    suite = ending.enter_context(closing(Suite.start(cpu, EventSettings(window_s=WINDOW_S, most_per_s=0), groups=(GROUP,))))
    if "bpf_iter__task" not in suite.cpu.instructions():
        pytest.skip("threads cannot be asked before Linux 6.15")
    processes = ending.enter_context(closing(ProcessTable(ProcessSettings())))
    tables = ending.enter_context(closing(TableSource(SourceSettings(directory))))
    assert suite.cpu.unwind_maps is not None
    sources = Sources(processes.get, processes.watch(), processes.open_binary, processes.files_of, tables)
    observer = WaitObserver(suite.cpu, processes, Unwinder(suite.cpu.unwind_maps, sources))
    observer.suite = suite
    return observer


def sleeping(process: "subprocess.Popen[str]") -> int:
    assert process.stdout and process.stdout.readline() == "asleep\n"
    until = time.monotonic() + DEADLINE_S
    while " S " not in Path(f"/proc/{process.pid}/stat").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    return process.pid


@pytest.mark.exact
def test_a_stack_in_a_page_that_nobody_serves_is_unreadable_and_others_are_read(
    header_directory: Path, programs: Programs, tmp_path: Path
) -> None:
    if not Path("/dev/fuse").exists():
        pytest.skip("needs /dev/fuse")
    settle, main = (programs.functions("asleep")[name] for name in ("settle", "main"))
    (tmp_path / "silent").mkdir()
    with silent_file(tmp_path / "silent") as silent, ExitStack() as ending:
        plain, *traps = (ending.enter_context(programs.running("asleep", *how)) for how in ((), ("",), (str(silent.path),)))
        pid, *trapped = map(sleeping, (plain, *traps))
        observer = observer_of(ending, header_directory, tmp_path, frozenset((pid, *trapped)))
        rescue = Timer(DEADLINE_S, silent.end)  # Whoever waits for its page goes on then.
        ending.callback(rescue.cancel)
        rescue.start()
        found: dict[int, tuple[list[int], StackStop]] = {}
        wanted = {pid: StackStop.BOTTOM} | dict.fromkeys(trapped, StackStop.UNREADABLE)
        while {one: stop for one, (_, stop) in found.items()} != wanted and rescue.is_alive():
            observer.meet(WINDOW_S)
            observer.window()
            found = {one: observer.stack_of(one) for one in wanted}
        assert rescue.is_alive(), found
    frames = found[pid][0]
    assert settle.start <= frames[1] < settle.end and main.start <= frames[2] < main.end
    assert [len(found[one][0]) for one in trapped] == [1, 1]


def test_a_thread_that_ends_while_nobody_looks_does_not_wait_for_ever(header_directory: Path, programs: Programs) -> None:
    """Where no iterator tells of all threads."""
    settings = EventSettings(window_s=WINDOW_S, most_per_s=0)
    with (
        programs.running("waits", "sleeps") as process,
        closing(Suite.start(CpuSettings(header_directory=header_directory), settings, groups=(before_6_15(GROUP),))) as suite,
    ):
        profiler = suite._groups[0][1]
        assert isinstance(profiler, WaitsProfiler) and process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        until = time.monotonic() + DEADLINE_S
        while process.pid not in profiler._read_threads()[0] and time.monotonic() < until:
            time.sleep(0.01)
        suite.drain()
        profiler.detach()
        process.kill()
        process.wait()
        profiler.attach()
        profiler.open(0)
        time.sleep(0.01)
        (time_drain,) = (drain for drain in suite.drain().events if drain.kind == "time")
        row = time_drain.keys["pid"] == process.pid
        ns = sum(int(column.values[row].sum()) for column in time_drain.columns if column.unit == "ns")
        left = profiler._read_threads()[0]
    assert process.pid not in left
    assert ns <= time_drain.end_ns - time_drain.start_ns  # of the time before, once
