# SPDX-License-Identifier: Apache-2.0
"""What the kernel left out is lost of the first kind of its group, once."""

from agent.profilers.missed_runs import MissedRuns
from agent.records.event_drain import EventAccount, EventDrain, event_keys
from emberwatch.v1.marks_pb2 import LossReason

FULL, UNPAIRED = LossReason.LOSS_REASON_MAP_FULL, LossReason.LOSS_REASON_UNPAIRED


def drain_of(kind: str, lost: dict[LossReason, int]) -> EventDrain:
    return EventDrain(kind, 0, 1, event_keys(0), (), EventAccount(7 + sum(lost.values()), 7, lost))


def test_missed_runs_of_a_window_are_lost_in_it() -> None:
    total = [1000]
    missed = MissedRuns(lambda: total[0])
    drains = (drain_of("lock", {FULL: 3, UNPAIRED: 5}), drain_of("other", {}))
    assert missed.added(drains) is drains
    total[0] += 23
    first, second = missed.added(drains)
    assert (first.account.expected, first.account.lost) == (7 + 3 + 5 + 23, {FULL: 3, UNPAIRED: 28})
    assert second is drains[1]
    assert missed.added(drains) is drains
