# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls are taken as often as is paid for, and stand for the calls between them."""

import numpy as np
import pytest

from agent.profilers.syscall_stacks import (
    CALL_STACK_KEY,
    CALL_STACK_SUMS,
    LEAST_PERIOD_NS,
    WANTED_PER_S,
    StackPace,
    rows_of_call_stacks,
    waiting_words,
)


def test_period_follows_what_was_taken() -> None:
    pace = StackPace(window_s=10)
    wanted = WANTED_PER_S * 10
    assert not pace.learn(2 * wanted)
    assert pace.period_ns == LEAST_PERIOD_NS
    assert pace.learn(4 * wanted)
    assert pace.period_ns == pytest.approx(4 * LEAST_PERIOD_NS, rel=1e-6)
    assert not pace.learn(wanted)
    assert pace.learn(wanted // 4)
    assert pace.period_ns == pytest.approx(LEAST_PERIOD_NS, abs=1)


def test_bits_of_calls_lie_in_their_words() -> None:
    assert waiting_words([0, 63, 64, 0x8000]) == {0: 1 << 63 | 1, 1: 1, 512: 1}


def test_stacks_become_rows_of_calls() -> None:
    keys = np.array([(1007, 99, 7, 1, 74, 0, 0), (1007, 0, 7, 1, 1, -14, 0)], CALL_STACK_KEY)
    sums = np.array([(23, 7_000, 2), (1, 90_000, 1)], CALL_STACK_SUMS)
    rows = rows_of_call_stacks([(keys, sums)], lambda values: values * np.uint64(2))
    assert [rows.objects[at] for at in rows.object_of_row] == [b"fsync", b"write"]
    assert rows.keys["user_stack"].tolist() == [99, 0]
    assert rows.keys["user_error"].tolist() == [0, -14]
    assert {column.name: column.values.tolist() for column in rows.columns} == {
        "count": [46, 2],
        "ns": [14_000, 180_000],
        "observed": [2, 1],
    }
    assert len(rows_of_call_stacks((), lambda values: values).keys) == 0
