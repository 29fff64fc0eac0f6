# SPDX-License-Identifier: Apache-2.0
"""How long each CPU was idle, by the kernel's own account: on some hosts the timer of an idle CPU does not reach the profiler."""

import os
from pathlib import Path

from agent.errors import KernelError

LIMIT_BYTES = 1 << 20
IDLE_FIELD, IO_WAIT_FIELD = 4, 5
"""Of the cpuN lines of /proc/stat, proc_stat(5), in USER_HZ."""


def read_idle_ns(path: Path = Path("/proc/stat")) -> dict[int, int]:
    """Idle time of each online CPU since boot, waiting for I/O included."""
    try:
        with path.open("rb") as file:
            return parse_idle_ns(file.read(LIMIT_BYTES), os.sysconf("SC_CLK_TCK"))
    except OSError as error:
        raise KernelError(f"cannot read {path}: {error.strerror}") from error


def parse_idle_ns(text: bytes, ticks_per_s: int) -> dict[int, int]:
    """The cpuN lines stand first; the sum over all CPUs, named cpu, is left out."""
    idle_ns = {}
    for line in text.splitlines():
        fields = line.split()
        if not line.startswith(b"cpu") or len(fields) <= IO_WAIT_FIELD:
            break
        if fields[0] != b"cpu":
            idle_ns[int(fields[0][3:])] = (int(fields[IDLE_FIELD]) + int(fields[IO_WAIT_FIELD])) * 1_000_000_000 // ticks_per_s
    return idle_ns
