# SPDX-License-Identifier: Apache-2.0
"""Entries of the BPF map of threads as they lie in the kernel, and what they add up to at a moment; see bpf/shared/thread.h."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from agent.profilers.wait_classes import WaitClass
from agent.records.event_drain import BUCKETS

CLASSES = len(WaitClass)
THREAD_SUMS = np.dtype(
    [
        ("switches", "<u8"),
        ("cpu_ns", "<u8"),
        ("runnable_ns", "<u8"),
        ("class_ns", "<u8", (CLASSES,)),
        ("short_runnable_ns", "<u8"),  # of waits for a CPU below the threshold
        ("short_max_ns", "<u8"),  # the longest of them in window max_window
        ("max_window", "<u8"),
        ("short_buckets", "<u4", (BUCKETS,)),
    ]
)
PROCESS = [("start_boot_ns", "<u8"), ("pid", "<u4"), ("exec_id", "<u4")]
WAIT_STACK = np.dtype(
    [
        *PROCESS,
        ("user_stack", "<u8"),
        ("kernel_stack", "<u8"),
        ("user_error", "<i2"),
        ("kernel_error", "<i2"),
        ("is_kernel_thread", "<u4"),
    ]
)
THREAD = np.dtype(
    [
        *PROCESS,
        ("comm", "S16"),
        ("is_kernel_thread", "<u4"),
        ("state", "<u4"),
        ("since_ns", "<u8"),
        ("born_window", "<u8"),
        ("wait_class", "<u4"),
        ("is_uninterruptible", "<u4"),
        ("blocked_ns", "<u8"),
        ("blocked_whole_ns", "<u8"),  # of the last wait, 0 when the thread was preempted since
        ("blocked_stands_ns", "<u8"),
        ("crossed_at_ns", "<u8"),  # the last end of a report that a wait has reached beyond, and that wait
        ("crossed_since_ns", "<u8"),
        ("crossed_class", "<u4"),
        ("crossed_uninterruptible", "<u4"),
        ("voluntary_switches", "<u8"),
        ("stack_since_ns", "<u8"),
        ("is_class_unknown", "<u8"),
        ("is_provisional", "<u8"),
        ("met_window", "<u8"),  # in which it was there for sure
        ("own", WAIT_STACK),
        ("waker", WAIT_STACK),
        ("sums", THREAD_SUMS),
    ]
)
DEPARTED_KEY = np.dtype([*PROCESS, ("comm", "S16")])

U64 = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.void]

SWITCHES, CPU, RUNNABLE, FIRST_CLASS = 0, 1, 2, 3
SHORT_RUNNABLE = FIRST_CLASS + CLASSES
FIRST_BUCKET = SHORT_RUNNABLE + 1
COLUMNS = FIRST_BUCKET + BUCKETS
"""Of the matrix of sums: switches, ns on a CPU, ns runnable, ns of each class, ns of short waits for a CPU, their buckets."""


class ThreadState(IntEnum):
    """enum thread_state."""

    NEW = 0
    RUNNING = 1
    RUNNABLE = 2
    BLOCKED = 3
    DEAD = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """When entries were read, and since when events have been seen."""

    now_ns: int
    on_since_ns: int


def sums_matrix(sums: Rows) -> U64:
    """THREAD_SUMS as one row of COLUMNS numbers each."""
    matrix = np.empty((len(sums), COLUMNS), np.uint64)
    for place, name in ((SWITCHES, "switches"), (CPU, "cpu_ns"), (RUNNABLE, "runnable_ns"), (SHORT_RUNNABLE, "short_runnable_ns")):
        matrix[:, place] = sums[name]
    matrix[:, FIRST_CLASS : FIRST_CLASS + CLASSES] = sums["class_ns"]
    matrix[:, FIRST_BUCKET:] = sums["short_buckets"]
    return matrix


def open_since(threads: Rows, moment: Moment) -> U64:
    """Since when each thread has been in its state, as far as events have been seen; never later than now."""
    since = np.maximum(threads["since_ns"], np.uint64(moment.on_since_ns))
    return np.asarray(np.minimum(since, np.uint64(moment.now_ns)))


def add_open(matrix: U64, threads: Rows, moment: Moment) -> U64:
    """The sums as they would be if every thread changed its state now."""
    total = matrix.copy()
    state = threads["state"]
    waiting_for = FIRST_CLASS + np.minimum(threads["wait_class"], CLASSES - 1).astype(np.int64)
    is_running, is_blocked = state == ThreadState.RUNNING, state == ThreadState.BLOCKED
    is_runnable = (state == ThreadState.RUNNABLE) | (state == ThreadState.NEW)
    column = np.select([is_running, is_runnable], [CPU, RUNNABLE], waiting_for)
    rows = np.flatnonzero(is_running | is_runnable | is_blocked)
    total[rows, column[rows]] += np.uint64(moment.now_ns) - open_since(threads, moment)[rows]
    return total
