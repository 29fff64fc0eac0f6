# SPDX-License-Identifier: Apache-2.0
"""What the agent costs in daily life: all kinds, many processes that live on and many that do not, on a host that is not quiet.

CPU is read over whole windows after those in which it learns the processes that were there: of the collector, in user space and in the
kernel on its behalf; of the children it starts; of its BPF programs. Memory is looked at ten times a second.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.agent import SETTLE_WINDOWS, Agent, until_boundary
from tests.bench.report import MIB, PER_CENT, Line, told
from tests.bench.timing import BenchError, Effort
from tests.support.servers import serving

LIVING, BORN_PER_S = 50, 20
_LIVING = "import time\nwhile True:\n    time.sleep(0.05)\n    sum(range(2000))\n"
_SHORT = (("true",), ("ls", "/usr/bin"), ("sh", "-c", "ls / | wc -l"), (sys.executable, "-I", "-S", "-c", "sum(range(100000))"))
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.1


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        server = closing.enter_context(serving(folder / "server"))
        closing.enter_context(_living())
        born = closing.enter_context(_birth())
        agent = Agent(folder, server)
        closing.callback(agent.close)
        agent.until_first_window_s()
        until_boundary(SETTLE_WINDOWS)
        memory = closing.enter_context(_watched(agent))
        before, before_born, began_s = _Cpu.of(agent.pid), len(born), time.monotonic()
        until_boundary(3 if effort.size >= 1 else 1)
        spent, past_s = _Cpu.of(agent.pid).since(before), time.monotonic() - began_s
        what = f"agent, all kinds, {LIVING} processes and {(len(born) - before_born) / past_s:.0f} more a second"
        yield told(f"{what}: CPU, user", spent.user_s / past_s, PER_CENT)
        yield told("the same, system", spent.system_s / past_s, PER_CENT)
        yield told("the same, children", spent.children_s / past_s, PER_CENT)
        (seen,) = server.get("agents", **{"from": "-10m"})["agents"]
        yield told("the same, BPF programs, of one core in all", float(seen["bpf_share"]), PER_CENT)
        for name, values in (("RssAnon", memory.anonymous), ("VmRSS", memory.resident)):
            yield told(f"the same, memory, median ({name})", median(values), MIB)
            yield told(f"the same, memory, highest ({name})", max(values), MIB)


@dataclass(frozen=True, slots=True)
class _Cpu:
    """Seconds since the start of a process."""

    user_s: float
    system_s: float
    children_s: float

    @classmethod
    def of(cls, pid: int) -> "_Cpu":
        """proc_pid_stat(5), fields 14 to 17."""
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user, system, children_user, children_system = (int(field) / _TICKS_PER_S for field in fields[11:15])
        return cls(user, system, children_user + children_system)

    def since(self, before: "_Cpu") -> "_Cpu":
        """What was spent in between."""
        return _Cpu(self.user_s - before.user_s, self.system_s - before.system_s, self.children_s - before.children_s)


@dataclass(frozen=True, slots=True)
class _Memory:
    """Bytes, as they were looked at."""

    anonymous: list[int]
    resident: list[int]


@contextmanager
def _watched(agent: Agent) -> Iterator[_Memory]:
    memory, is_over = _Memory([], []), threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_S):
            try:
                memory.anonymous.append(agent.memory_bytes("RssAnon"))
                memory.resident.append(agent.memory_bytes("VmRSS"))
            except (OSError, BenchError):
                return  # It is gone, which the bench itself will tell.

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _living() -> Iterator[None]:
    """Processes that do a little, all the time."""
    processes = [subprocess.Popen([sys.executable, "-I", "-S", "-c", _LIVING]) for _ in range(LIVING)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def _birth() -> Iterator[list[float]]:
    """Processes that come and go; yields when each began."""
    born: list[float] = []
    running: list[subprocess.Popen[bytes]] = []
    is_over = threading.Event()

    def bear() -> None:
        began_s = time.monotonic()
        for number, command in enumerate(itertools.cycle(_SHORT)):
            if is_over.wait(max(0.0, began_s + number / BORN_PER_S - time.monotonic())):
                return
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            born.append(time.monotonic())
            running[:] = [process for process in running if process.poll() is None]

    thread = threading.Thread(target=bear)
    thread.start()
    try:
        yield born
    finally:
        is_over.set()
        thread.join()
        for process in running:
            process.wait()
