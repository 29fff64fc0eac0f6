# SPDX-License-Identifier: Apache-2.0
"""How many sockets are followed depends on the memory of the host; the account of a window balances whatever was counted."""

import numpy as np
import pytest

from agent.profilers.tcp import LEAST_SESSIONS, MOST_SESSIONS, TCP_COUNTS, account_of_events, session_entries
from emberwatch.v1.marks_pb2 import LossReason


@pytest.mark.parametrize(
    ("memory_gib", "sessions"), [(0.5, LEAST_SESSIONS), (4, 16_384), (7.9, 16_384), (16, 65_536), (1024, MOST_SESSIONS)]
)
def test_sessions_grow_with_memory(memory_gib: float, sessions: int) -> None:
    assert session_entries(int(memory_gib * (1 << 30))) == sessions


@pytest.mark.parametrize(("counted", "unexplained"), [(23, {}), (22, {}), (30, {LossReason.LOSS_REASON_UNEXPLAINED: 7})])
def test_no_loss_is_negative(counted: int, unexplained: dict[LossReason, int]) -> None:
    counts = np.zeros(2, TCP_COUNTS)
    counts["stored"] = [counted - 5, 5]
    counts["filtered"] = [3, 0]
    counts["map_full"] = [0, 2]
    account = account_of_events(23, counts)
    assert account.lost == {LossReason.LOSS_REASON_MAP_FULL: 2} | unexplained
    assert account.expected == 23 + account.filtered + sum(account.lost.values())
