# SPDX-License-Identifier: Apache-2.0
"""Starts small real processes and tells their identity as the kernel would."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from agent.process.start import ProcessStat, parse_stat
from agent.records.process import ProcessKey

TICK_NS = 10_000_000


@contextlib.contextmanager
def python(program: str, *arguments: str, environ: dict[str, str] | None = None, executable: str = sys.executable) -> Iterator[int]:
    """A Python that runs `program`; it must print a line when it is ready, and is killed at the end. Gives its PID."""
    command = [executable, "-I", "-S", "-u", "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=environ or {}) as child:
        assert child.stdout is not None
        assert child.stdout.readline(), "the child did not start"
        try:
            yield child.pid
        finally:
            child.kill()


def stat_of(pid: int) -> ProcessStat:
    """The stat line of a running process."""
    stat = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    assert stat is not None
    return stat


def key_of(pid: int, exec_id: int = 1) -> ProcessKey:
    """The key of a running process; the start is known to 10 ms, its last digits are made up."""
    return ProcessKey(pid, stat_of(pid).start_ticks * TICK_NS + 1_234_567, exec_id)


def open_descriptors() -> int:
    """How many this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * 4096
