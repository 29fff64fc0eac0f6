# SPDX-License-Identifier: Apache-2.0
"""What the agent itself costs its host, measured between windows."""

import contextlib
import ctypes
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from agent.records.window import Overhead

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class OwnCost:
    """Differences from one window to the next. What was spent before the first sample (compiling) is not part of them."""

    def __init__(self, bpf_run_time_ns: Callable[[], int], map_bytes: Callable[[], int]) -> None:
        self._bpf_run_time_ns = bpf_run_time_ns
        self._map_bytes = map_bytes
        self._cpu_ns = _cpu_ns()
        self._bpf_ns = bpf_run_time_ns()

    def since_last(self) -> Overhead:
        """CPU since the last call, memory now."""
        cpu_ns, bpf_ns = _cpu_ns(), self._bpf_run_time_ns()
        overhead = Overhead(cpu_ns - self._cpu_ns, max(0, bpf_ns - self._bpf_ns), resident_bytes(), self._map_bytes())
        self._cpu_ns, self._bpf_ns = cpu_ns, bpf_ns
        return overhead


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Resident memory of this process."""
    return int(statm.read_text().split()[1]) * _PAGE_BYTES


def give_back_memory() -> None:
    """Give pages that the last window freed back to the host (malloc_trim(3); a libc without it keeps them)."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _cpu_ns() -> int:
    """CPU of this process with all its threads, and of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)
