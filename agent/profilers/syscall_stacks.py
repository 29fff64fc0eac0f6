# SPDX-License-Identifier: Apache-2.0
"""Stacks of system calls, sampled by the time that calls take: how often, and the rows that come of it."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.profilers.syscall_names import call_name
from agent.profilers.syscall_rows import CallRows
from agent.records.event_drain import EventColumn, event_keys
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]

CALL_STACK_KEY = np.dtype(
    [
        ("start_boot_ns", "<u8"),
        ("user_stack", "<u8"),
        ("pid", "<u4"),
        ("exec_id", "<u4"),
        ("call", "<u4"),
        ("user_error", "<i2"),
        ("padding", "<u2"),
    ]
)
"""struct call_stack_key in bpf/syscall.bpf.c."""
CALL_STACK_SUMS = np.dtype([("count", "<u8"), ("ns", "<u8"), ("observed", "<u8")])
"""struct call_stack_sums there."""

LEAST_PERIOD_NS = 10_000_019
"""A CPU that does nothing but system calls gives a hundred stacks a second. A prime: not in phase with what it measures."""
WANTED_PER_S = 50
"""Stacks a second and CPU that the period is set for when calls of many threads take more time than there are CPUs."""
MOST_PER_S = 200
"""Stacks a second and CPU, until the period has been set."""


class StackPace:
    """How much time in calls gets one stack, learned from window to window."""

    def __init__(self, window_s: float) -> None:
        self._wanted = max(1, int(WANTED_PER_S * window_s))
        self.period_ns = LEAST_PERIOD_NS
        self.most_stacks = max(1, int(MOST_PER_S * window_s))

    def learn(self, taken: int) -> bool:
        """`taken` is of the busiest CPU in the last window. True when the period is another now."""
        before = self.period_ns
        if taken > 2 * self._wanted or (self.period_ns > LEAST_PERIOD_NS and 2 * taken < self._wanted):
            self.period_ns = max(LEAST_PERIOD_NS, self.period_ns * max(taken, 1) // self._wanted) | 1
        return self.period_ns != before


def waiting_words(calls: Iterable[int]) -> dict[int, int]:
    """The bits of `calls` in words of 64, by the number of the word."""
    words: dict[int, int] = {}
    for call in calls:
        words[call >> 6] = words.get(call >> 6, 0) | 1 << (call & 63)
    return words


def rows_of_call_stacks(pieces: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]], scaled: Callable[[U64], U64]) -> CallRows:
    """One row for each (key, sums) of `pieces`. `scaled` as in rows_of_calls."""
    found = list(pieces)
    keys = np.concatenate([np.empty(0, CALL_STACK_KEY), *(piece[0] for piece in found)])
    sums = np.concatenate([np.empty(0, CALL_STACK_SUMS), *(piece[1] for piece in found)])
    rows = event_keys(len(keys))
    for name in ("start_boot_ns", "pid", "exec_id", "user_stack", "user_error"):
        rows[name] = keys[name]
    calls, call_of_row = np.unique(keys["call"], return_inverse=True)
    columns = (
        EventColumn("count", "count", pb.MERGE_SUM, scaled(sums["count"])),
        EventColumn("ns", "ns", pb.MERGE_SUM, scaled(sums["ns"])),
        EventColumn("observed", "count", pb.MERGE_SUM, sums["observed"]),
    )
    return CallRows(rows, columns, (b"", *map(call_name, calls.tolist())), call_of_row + 1)
