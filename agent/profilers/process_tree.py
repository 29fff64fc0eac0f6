# SPDX-License-Identifier: Apache-2.0
"""Fills and tends the BPF map of process trees to which a profile is limited.

Forks are followed by BPF (bpf/shared/births.h); here are put in the processes that exist already, and taken out the dead.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from agent.errors import KernelError
from agent.kernel import program

_CHUNK_ENTRIES = 1024
_START_UNKNOWN = (0).to_bytes(8, "little")
"""BPF writes the start of a process at its first event."""


class ProcessTree:
    """The pids in the BPF map `tree`."""

    def __init__(self, tree_map: int, proc_root: Path) -> None:
        self._map = tree_map
        self._proc_root = proc_root

    def follow(self, roots: Iterable[int]) -> None:
        """Put in the roots and all their descendants. Call it when forks are followed already: then none slips through.

        A child whose parent was not in the map when it was born is found by looking again until nothing is new.
        """
        followed: set[int] = set()
        wanted = set(roots)
        for pid in sorted(wanted):
            if not (self._proc_root / str(pid)).exists():
                raise KernelError(f"there is no process {pid} to profile")
        while new := wanted - followed:
            for pid in new:
                program.update(self._map, pid.to_bytes(4, "little"), _START_UNKNOWN)
            followed |= new
            wanted |= descendants(followed, parents(self._proc_root))

    def forget_dead(self) -> None:
        for pids, _ in program.read_all(self._map, np.dtype("<u4"), np.dtype("<u8"), _CHUNK_ENTRIES):
            for pid in pids.tolist():
                if not (self._proc_root / str(pid)).exists():
                    program.delete(self._map, pid.to_bytes(4, "little"))


def parents(proc_root: Path) -> dict[int, int]:
    """Parent of each process that lives now."""
    found = {}
    for entry in proc_root.iterdir():
        if entry.name.isdigit():
            parent = _parent(entry / "stat")
            if parent is not None:
                found[int(entry.name)] = parent
    return found


def descendants(roots: set[int], parent_of: dict[int, int]) -> set[int]:
    """All processes below the roots, without them."""
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    pending = list(roots)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found - roots


def _parent(stat: Path) -> int | None:
    """Fourth field of /proc/PID/stat, after the last parenthesis: the name before it may hold anything. None when it is gone."""
    try:
        fields = stat.read_bytes().rpartition(b")")[2].split()
        return int(fields[1])
    except (OSError, IndexError, ValueError):
        return None
