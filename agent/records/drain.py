# SPDX-License-Identifier: Apache-2.0
"""What one drain of the on-CPU maps yields: rows of addresses, and the account of ticks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from emberwatch.v1.marks_pb2 import LossReason

CPU_KEY = np.dtype(
    [
        ("start_boot_ns", "<u8"),
        ("user_stack", "<u8"),  # hash of the user stack, 0 when there is none
        ("kernel_stack", "<u8"),  # hash of the kernel stack, 0 when there is none
        ("pid", "<u4"),
        ("exec_id", "<u4"),
        ("user_error", "<i2"),  # what bpf_get_stack answered when below 0, or -1000 when the map of stacks was full; else 0
        ("kernel_error", "<i2"),  # the same for the kernel stack; -14 while in user mode is not an error and is 0 here
        ("is_kernel_thread", "<u4"),
        ("comm", "S16"),  # thread name, cut at the first NUL
    ]
)
"""One row key as the BPF program writes it: 56 bytes, no holes."""

STACK_MAP_FULL = -1000
"""Value of user_error and kernel_error for a stack that found no room."""


class StackStop(IntEnum):
    """Why the walk of a stack ended; enum stack_stop in bpf/shared/stack.h. All from CAP on are incomplete."""

    NONE = 0
    """The kernel walked it by frame pointers and does not say."""
    BOTTOM = 1
    CAP = 2
    NO_MAPPING = 3
    NO_ROW = 4
    UNSUPPORTED = 5
    UNREADABLE = 6
    ZERO_RETURN = 7
    NOT_GROWING = 8
    NO_TABLE = 9


@dataclass(frozen=True, slots=True)
class Stacks:
    """Distinct stacks by hash. Stack i is addresses[bounds[i]:bounds[i + 1]], leaf first."""

    hashes: npt.NDArray[np.uint64]
    """Ascending, distinct."""
    bounds: npt.NDArray[np.int64]
    """One more than there are stacks."""
    addresses: npt.NDArray[np.uint64]
    is_truncated: npt.NDArray[np.bool_]
    """Per stack: the walk ended at the limit, not at the bottom."""
    stops: npt.NDArray[np.uint8]
    """Per stack: StackStop."""


@dataclass(frozen=True, slots=True)
class TickAccount:
    """The account of timer ticks.

    expected = seen + lost[TIMER_MISSED] + lost[CPU_OFFLINE]; seen = stored + idle + filtered + lost in maps.
    """

    expected: int
    idle: int
    filtered: int
    lost: Mapping[LossReason, int]
    """Only reasons that happened."""


@dataclass(frozen=True, slots=True)
class CpuDrain:
    """One window of on-CPU samples. Times are CLOCK_MONOTONIC; the window is from drain to drain."""

    start_ns: int
    end_ns: int
    period_ns: int
    keys: npt.NDArray[np.void]
    """dtype CPU_KEY, no two alike."""
    counts: npt.NDArray[np.uint64]
    """Samples of each key."""
    stacks: Stacks
    ticks: TickAccount
