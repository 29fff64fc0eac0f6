# SPDX-License-Identifier: Apache-2.0
"""How many sockets are followed depends on the memory of the host."""

import pytest

from agent.profilers.tcp import LEAST_SESSIONS, MOST_SESSIONS, session_entries


@pytest.mark.parametrize(
    ("memory_gib", "sessions"), [(0.5, LEAST_SESSIONS), (4, 16_384), (7.9, 16_384), (16, 65_536), (1024, MOST_SESSIONS)]
)
def test_sessions_grow_with_memory(memory_gib: float, sessions: int) -> None:
    assert session_entries(int(memory_gib * (1 << 30))) == sessions
