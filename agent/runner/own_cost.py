# SPDX-License-Identifier: Apache-2.0
"""What the agent itself costs its host, measured between windows."""

import contextlib
import ctypes
import os
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

from agent.records.window import Overhead

_MADV_DONTNEED = 4
_MAPPING = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) r-[-x]p \S+ \S+ [1-9]\d* +/.*\n(?:[A-Z]\w+:.*\n)*?Anonymous: +(?P<anonymous>\d+) kB",
    re.MULTILINE,
)
"""Read-only private mappings of files, in proc_pid_smaps(5)."""
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


def give_back_code(smaps: Path = Path("/proc/self/smaps")) -> int:
    """Take file pages that only the start needed out of memory; gives the bytes of the mappings that were asked to let go.

    Half of what is resident after imports is code and constants of libraries that never run again. They are clean, so the kernel
    reads them again from the file when they do (madvise(2), MADV_DONTNEED on a private file mapping). A mapping that holds a single
    page of its own (Anonymous) is left alone: that page would be lost.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    given_bytes = 0
    for found in _MAPPING.finditer(smaps.read_text(errors="replace")):
        start, end, anonymous_kb = int(found["start"], 16), int(found["end"], 16), int(found["anonymous"])
        if anonymous_kb == 0 and libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED) == 0:
            given_bytes += end - start
    return given_bytes


def _cpu_ns() -> int:
    """CPU of this process with all its threads, and of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)
