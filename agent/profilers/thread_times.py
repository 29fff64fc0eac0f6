# SPDX-License-Identifier: Apache-2.0
"""Where the time of threads went between two looks at their sums, which only grow (bpf/shared/thread.h).

What is open at a look counts up to it and goes on in the next difference: a state that lasts for a minute is in six windows, ten seconds
in each. Times are CLOCK_MONOTONIC, which stands still while the host is suspended.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agent.profilers.thread_rows import (
    CLASSES,
    COLUMNS,
    CPU,
    FIRST_BUCKET,
    FIRST_CLASS,
    PROCESS,
    THREAD,
    U64,
    Moment,
    Rows,
    ThreadState,
    add_open,
    sums_matrix,
)

WHO = np.dtype([*PROCESS, ("comm", "S16"), ("is_kernel_thread", "<u4")])
_BUCKET_MASK = np.uint64(0xFFFF_FFFF)


@dataclass(frozen=True, slots=True)
class ThreadWindow:
    """Of each thread that there was, or group of short-lived ones: what it did; rows may be alike."""

    who: Rows
    """dtype WHO."""
    sums: U64
    """thread_rows.COLUMNS numbers a row."""
    short_max_ns: U64
    threads: U64
    """How many threads a row stands for."""


@dataclass(slots=True)
class _Before:
    """The sums at the last look, by tid, ascending."""

    tids: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    born: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    total: U64 = field(default_factory=lambda: np.zeros((0, COLUMNS), np.uint64))
    closed: U64 = field(default_factory=lambda: np.zeros((0, COLUMNS), np.uint64))


class ThreadTimes:
    """Differences from look to look."""

    def __init__(self) -> None:
        self._before = _Before()
        self._looked_ns = 0
        self._untold = np.zeros(0, np.uint32)

    def look(self, tids: npt.NDArray[np.uint32], threads: Rows, moment: Moment, window: int) -> ThreadWindow:
        """What happened since the last look. `threads` are THREAD, `window` is the number under which maxima are kept."""
        order = np.argsort(tids)
        tids, threads = tids[order], threads[order]
        closed = sums_matrix(threads["sums"])
        total = add_open(closed, threads, moment)
        before = self._of(tids, threads["born_window"])
        past = np.where(total > before, total - before, np.uint64(0))
        past[:, FIRST_BUCKET:] = total[:, FIRST_BUCKET:] - before[:, FIRST_BUCKET:] & _BUCKET_MASK  # of 32 bits: they may go round
        _take_excess(past, moment.now_ns - max(self._looked_ns, moment.on_since_ns))
        self._looked_ns = moment.now_ns
        kept = before + past
        kept[:, FIRST_BUCKET:] = total[:, FIRST_BUCKET:]
        self._before = _Before(tids, threads["born_window"].copy(), kept, closed)
        self._untold = tids[(total[:, :FIRST_BUCKET] > kept[:, :FIRST_BUCKET]).any(axis=1)]
        is_alive = threads["state"] != ThreadState.DEAD
        is_seen = is_alive | past.any(axis=1)
        maxima = np.where(threads["sums"]["max_window"] == window, threads["sums"]["short_max_ns"], np.uint64(0))
        return ThreadWindow(who_of(threads)[is_seen], past[is_seen], maxima[is_seen], is_alive[is_seen].astype(np.uint64))

    def is_told(self, tids: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Whether the last look told all that their entries hold; what came after its moment is left for the next."""
        return np.isin(tids, self._untold, invert=True)

    def begin_again(self) -> None:
        """Events are seen again after a while without: what was open at the last look counts anew from now."""
        self._before.total = self._before.closed.copy()

    def _of(self, tids: npt.NDArray[np.uint32], born: U64) -> U64:
        """The sums of the same threads at the last look, 0 for new ones."""
        before = self._before
        found = np.zeros((len(tids), COLUMNS), np.uint64)
        if not len(before.tids):
            return found
        at = np.minimum(np.searchsorted(before.tids, tids), len(before.tids) - 1)
        is_same = (before.tids[at] == tids) & (before.born[at] == born)
        found[is_same] = before.total[at[is_same]]
        return found


def _take_excess(past: U64, elapsed_ns: int) -> None:
    """Entries are read a moment after `now`, and hold what happened in between: no thread does more than time went by. What is too much
    is left for the next look; what fell behind (an entry read in the middle of a switch) catches up there.
    """
    ns = past[:, CPU : FIRST_CLASS + CLASSES]
    sums = ns.sum(axis=1)
    rows = np.flatnonzero(sums > np.uint64(elapsed_ns))
    largest = ns[rows].argmax(axis=1)
    excess = sums[rows] - np.uint64(elapsed_ns)
    ns[rows, largest] -= np.minimum(excess, ns[rows, largest])


def departed_window(keys: Rows, sums: Rows) -> ThreadWindow:
    """Threads that began and ended within the window, by process and name."""
    who = np.zeros(len(keys), WHO)
    for name in ("start_boot_ns", "pid", "exec_id", "comm"):
        who[name] = keys[name]
    return ThreadWindow(who, sums_matrix(sums), sums["short_max_ns"].copy(), np.zeros(len(keys), np.uint64))


def joined(parts: list[ThreadWindow]) -> ThreadWindow:
    """All rows, of looks at different times: how many threads there were is what the largest saw."""
    largest = max(parts, key=lambda part: int(part.threads.sum()), default=None)
    return ThreadWindow(
        who=np.concatenate([np.zeros(0, WHO), *(part.who for part in parts)]),
        sums=np.concatenate([np.zeros((0, COLUMNS), np.uint64), *(part.sums for part in parts)]),
        short_max_ns=np.concatenate([np.zeros(0, np.uint64), *(part.short_max_ns for part in parts)]),
        threads=np.concatenate([np.zeros(0, np.uint64), *(part.threads * np.uint64(part is largest) for part in parts)]),
    )


def who_of(threads: Rows) -> Rows:
    """Whose each entry is."""
    assert threads.dtype == THREAD
    who = np.zeros(len(threads), WHO)
    for name in WHO.names or ():
        who[name] = threads[name]
    return who
