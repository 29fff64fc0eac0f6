# SPDX-License-Identifier: Apache-2.0
"""How long cgroups were kept from running because their CPU quota was used up, by process: cpu.stat of cgroups(7).

Threads that are throttled are runnable, so only cgroups above processes that were runnable are read, each once, and what one says goes to
the process below it that was runnable longest: a cgroup is as a rule one service. The time is added up over CPUs, as the kernel counts it.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.process.cgroup import MAX_CGROUP_BYTES, cpu_cgroup
from agent.process.directory import ProcessDirectory
from agent.process.start import is_start
from agent.records.process import ProcessKey

U64 = npt.NDArray[np.uint64]

_CGROUPS_MAX = 1024
"""Read of one window, those of the processes that were runnable longest; 20 us each."""
_KEPT_MAX = 4096
_MOVED_WINDOWS = 30
"""After so many, processes are asked again for their cgroup: they may have been moved."""
_US, _NS = b"throttled_usec", b"throttled_time"
"""Of version 2, and of version 1."""


class Throttling:
    """Differences from one window to the next. A cgroup counts from when it was first read."""

    def __init__(self, proc_root: Path = Path("/proc"), cgroup_root: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc_root = proc_root
        self._cgroup_root = cgroup_root
        self._folders: OrderedDict[ProcessKey, tuple[Path, ...]] = OrderedDict()
        self._throttled_ns: OrderedDict[Path, int] = OrderedDict()
        self._windows = 0

    def since_last(self, keys: Sequence[ProcessKey], runnable_ns: U64) -> U64:
        """Nanoseconds of each process in this window; `runnable_ns` is how long it was ready to run, 0 for those that cannot have been."""
        if self._windows % _MOVED_WINDOWS == 0:
            self._folders.clear()
        self._windows += 1
        found = np.zeros(len(keys), np.uint64)
        seen: set[Path] = set()
        longest = np.argsort(-runnable_ns.astype(np.int64), kind="stable")
        for at in longest[: np.count_nonzero(runnable_ns)].tolist():
            for folder in self._folders_of(keys[at]):
                if folder not in seen:
                    seen.add(folder)
                    found[at] += np.uint64(self._difference_ns(folder))
            if len(seen) >= _CGROUPS_MAX:
                break
        return found

    def _folders_of(self, key: ProcessKey) -> tuple[Path, ...]:
        """The cgroup of a process and all above it; the root has no quota."""
        folders = self._folders.get(key)
        if folders is None:
            folders = self._folders[key] = self._read_folders(key)
            if len(self._folders) > _KEPT_MAX:
                self._folders.popitem(last=False)
        return folders

    def _read_folders(self, key: ProcessKey) -> tuple[Path, ...]:
        directory = ProcessDirectory.open(self._proc_root, key.pid)
        if directory is None:
            return ()
        with directory:
            stat = directory.stat()
            if stat is None or not is_start(stat, key.start_boot_ns):
                return ()
            is_old, path = cpu_cgroup(directory.read(b"cgroup", MAX_CGROUP_BYTES) or b"")
        parts = [part for part in path.decode("utf-8", "surrogateescape").split("/") if part]
        if ".." in parts:
            # It lies outside of what this agent can see.
            return ()
        root = self._cgroup_root / "cpu" if is_old else self._cgroup_root
        return tuple(root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1))

    def _difference_ns(self, folder: Path) -> int:
        now_ns = _throttled_ns(folder / "cpu.stat")
        if now_ns is None:
            return 0
        before_ns = self._throttled_ns.get(folder, now_ns)
        self._throttled_ns[folder] = now_ns
        self._throttled_ns.move_to_end(folder)
        if len(self._throttled_ns) > _KEPT_MAX:
            self._throttled_ns.popitem(last=False)
        return max(0, now_ns - before_ns)


def _throttled_ns(path: Path) -> int | None:
    """None where it is not told: a cgroup that is gone, or a kernel without quotas."""
    try:
        words = path.read_bytes().split()
    except OSError:
        return None
    for name, value in zip(words[::2], words[1::2], strict=False):
        if name in (_US, _NS) and value.isdigit():
            return int(value) * (1000 if name == _US else 1)
    return None
