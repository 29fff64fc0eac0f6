# SPDX-License-Identifier: Apache-2.0
"""A process as the agent knows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agent.records.binary import Binary


class ProcessKey(NamedTuple):
    """Identity of one program in one process: changes with PID reuse (start) and with exec (exec_id). A tuple, for it is looked up all
    the time.

    `start_boot_ns` is task_struct.group_leader.start_boottime; `exec_id` is task_struct.self_exec_id.
    """

    pid: int
    start_boot_ns: int
    exec_id: int


class Origin(NamedTuple):
    """What the kernel says of a process when it begins, and at its first event: enough to call it something when it is gone."""

    key: ProcessKey
    parent: ProcessKey | None
    """Of a fork: what it is a copy of."""
    cgroup_id: int
    """In the unified hierarchy."""
    exe: bytes
    """Name of the file it runs, without folders, at most 63 bytes; empty when unknown."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """An executable mapping, as in /proc/PID/maps; addresses from `start` up to but without `end`."""

    start: int
    end: int
    file_offset: int
    device: tuple[int, int]
    inode: int
    path: bytes
    """As in maps with octal escapes undone; empty for anonymous memory; b"[vdso]", b"[vsyscall]" as they are."""


class MappingKind(Enum):
    """What stands behind a mapping, which tells how an address in it becomes a place."""

    FILE = 1
    VDSO = 2
    VSYSCALL = 3
    ANONYMOUS = 4
    """No file, no perf map."""
    JIT = 5
    """Named by the process's perf map."""
    UNREADABLE = 6
    """There is a file, but it could not be opened or is no regular file."""


@dataclass(frozen=True, slots=True)
class MappedBinary:
    """A mapping together with what was found behind it."""

    mapping: Mapping
    kind: MappingKind
    binary: Binary | None
    """Set for FILE and VDSO."""


class Fate(Enum):
    """How a process was found when the agent first looked."""

    ALIVE = 1
    EXITED = 2
    """Gone before its mappings could be read."""
    EXEC_RACE = 3
    """It had become another program by then."""
    KERNEL = 4
    """A kernel thread: no mappings, and none missing."""


@dataclass(frozen=True, slots=True, eq=False)
class PerfMap:
    """Names of JIT code: ranges sorted by start, not overlapping; where lines of the file overlap, the later one has won.

    A range may lie outside every executable mapping: JITs that write code turn execution off while they do.
    """

    starts: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    """Beside `starts`; the first address behind each range."""
    names: Sequence[bytes]
    """Beside `starts`; made when asked for, the bytes lie in one piece."""

    def find(self, addr: int) -> int | None:
        """Index of the range that holds `addr`, or None."""
        index = int(np.searchsorted(self.starts, np.uint64(addr), side="right")) - 1
        return index if index >= 0 and addr < int(self.ends[index]) else None


@dataclass(frozen=True, slots=True)
class Process:
    """Everything that is known of a process at the end of a window."""

    key: ProcessKey
    fate: Fate
    service: bytes
    """At most 256 bytes; b"[exited]", b"[exec race]" or b"[unread]" when its name could not be read."""
    version: bytes
    """At most 256 bytes; empty when unknown."""
    mappings: tuple[MappedBinary, ...]
    """Sorted by start, not overlapping."""
    perf_map: PerfMap | None
    generation: int
    """Counts up whenever mappings or perf map change, so that what was made from them can be kept."""
