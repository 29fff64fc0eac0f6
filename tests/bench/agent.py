# SPDX-License-Identifier: Apache-2.0
"""What the agent costs its host at 99 Hz, beside `perf record -F 99 -a -g` on the same load at the same time.

The real agent with a real server, its spool and its uploads. Its CPU is read from its process clock over whole windows, after the
first two, in which it learns processes, sends frames and uploads symbols; what these cost stands on a line of its own.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.bench.load import loaded
from tests.bench.perf_record import PerfRecord
from tests.bench.report import MIB, PER_CENT, SECONDS, Line, against, bounded, told
from tests.bench.timing import BenchError, Effort, cpu_s
from tests.support.servers import RunningServer, serving

RATE_HZ, WINDOW_S = 99, 10
SETTLE_WINDOWS = 2
READY_S, MOST_S = 60.0, 180.0
_POLL_S = 0.05


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        server = closing.enter_context(serving(folder / "server"))
        closing.enter_context(loaded(folder, MOST_S))
        perf = PerfRecord(RATE_HZ, folder, MOST_S)
        closing.callback(perf.close)
        agent = Agent(folder, server)
        closing.callback(agent.close)
        yield told("agent start: compile, load, attach", agent.start_s, SECONDS)
        yield bounded("first window at the server, after attach", agent.until_first_window_s(), SECONDS, 10)
        began_cpu_s = cpu_s(agent.pid)
        perf.enable()
        until_boundary(SETTLE_WINDOWS)
        settle_s = cpu_s(agent.pid) - began_cpu_s
        yield from _cpu_lines(agent, perf, windows=3 if effort.size >= 1 else 1)
        yield told(f"agent CPU in the {SETTLE_WINDOWS} windows before that, in all", settle_s, SECONDS)
        yield from _memory_lines(agent, server)


def _cpu_lines(agent: "Agent", perf: PerfRecord, windows: int) -> Iterator[Line]:
    """Both over the same whole windows, as shares of a core for each core that was busy meanwhile."""
    before = (time.monotonic(), _busy_s(), cpu_s(agent.pid), perf.cpu_s())
    until_boundary(windows)
    after = (time.monotonic(), _busy_s(), cpu_s(agent.pid), perf.cpu_s())
    wall_s, busy_s, ours_s, perf_s = (later - earlier for earlier, later in zip(before, after, strict=True))
    what = f"agent, user space, of a core per busy core ({busy_s / wall_s:.2f} busy)"
    yield bounded(what, ours_s / busy_s, PER_CENT, 0.001)
    yield against("the same beside perf record", ours_s / busy_s, ("perf", perf_s / busy_s), PER_CENT, None)


def _memory_lines(agent: "Agent", server: RunningServer) -> Iterator[Line]:
    (seen,) = server.get("agents", **{"from": "-10m"})["agents"]
    yield told("its BPF programs, of one core in all", float(seen["bpf_share"]), PER_CENT)
    yield bounded("agent memory, resident", agent.memory_bytes("VmRSS"), MIB, 48 << 20)
    yield told("agent memory, peak", agent.memory_bytes("VmHWM"), MIB)
    yield told("loader child, peak, gone after the start", agent.loader_peak_bytes(), MIB)
    yield told("BPF maps", float(seen["map_bytes"]), MIB)


class Agent:
    """A running `emberwatch-agent run`."""

    def __init__(self, folder: Path, server: RunningServer, *options: str) -> None:
        self._log = folder / "agent.log"
        self._server = server
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "agent.cli", "run", "--server", server.grpc, "--data-dir", str(folder / "agent"), *options]
        began_s = time.monotonic()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, "--ready-fd", str(theirs.fileno())], pass_fds=[theirs.fileno()], stderr=log)
        self._line, self.pid = ours, self._process.pid
        ready, _, _ = select.select([ours], [], [], READY_S)
        if not ready or not json.loads(ours.recv(4096) or b"{}"):
            self.close()
            raise BenchError(f"the agent did not start: {self._log.read_text()[-300:]}")
        self._ready_s = time.monotonic()
        self.start_s = self._ready_s - began_s

    def until_first_window_s(self) -> float:
        """Wait until the server can show something."""
        while not self._server.get("labels/service/values", **{"from": "-10m"})["values"]:
            if time.monotonic() - self._ready_s > READY_S:
                raise BenchError("no window has come")
            time.sleep(_POLL_S)
        return time.monotonic() - self._ready_s

    def memory_bytes(self, name: str) -> int:
        """A row of /proc/PID/status."""
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        if found is None:
            raise BenchError(f"no {name} of the agent: is it gone?")
        return int(found[1]) << 10

    def loader_peak_bytes(self) -> int:
        """As the agent logged it."""
        found = re.search(r"loader_peak_mib=(\d+)", self._log.read_text())
        if found is None:
            raise BenchError("the agent did not log loader_peak_mib")
        return int(found[1]) << 20

    def close(self) -> None:
        """Stop it as its parent would."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._line.close()


def until_boundary(windows: int) -> None:
    """Sleep until the middle of the window that is so many later: by then everything of the last one is done."""
    now_s = time.time()
    time.sleep((now_s // WINDOW_S + windows) * WINDOW_S + WINDOW_S / 2 - now_s)


def _busy_s() -> float:
    """CPU time of the host that was not idle; see proc_stat(5)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
