# SPDX-License-Identifier: Apache-2.0
"""Runs of programs that the kernel left out, since the same program was running on that CPU: an event in the middle of another.

Most are waits for the locks of BPF's own maps. Nobody sees such an event, so that only the kernel's own count tells (recursion_misses in
struct bpf_prog_info, from 5.12 on).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.records.event_drain import EventDrain
from emberwatch.v1.marks_pb2 import LossReason


class MissedRuns:
    """Of one group of programs."""

    def __init__(self, total: Callable[[], int] = lambda: 0) -> None:
        """`total` answers how many there were since the programs were loaded."""
        self._total = total
        self._before = total()

    def added(self, drains: Sequence[EventDrain]) -> Sequence[EventDrain]:
        """The drains of a window, where the first kind has lost what was missed in it: events that were due and are in no row."""
        before, self._before = self._before, self._total()
        missed = self._before - before
        if missed <= 0 or not drains:
            return drains
        first, *others = drains
        lost = dict(first.account.lost)
        lost[LossReason.LOSS_REASON_UNPAIRED] = lost.get(LossReason.LOSS_REASON_UNPAIRED, 0) + missed
        return (replace(first, account=replace(first.account, expected=first.account.expected + missed, lost=lost)), *others)
