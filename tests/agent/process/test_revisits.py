# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of second looks."""

import pytest

from agent.process.revisits import Revisits
from agent.records.process import ProcessKey

KEYS = [ProcessKey(pid, 23, 1) for pid in (7, 11, 13)]


def test_looks_come_later_and_later_and_end() -> None:
    now_s = [100.0]
    revisits = Revisits(10, lambda: now_s[0])
    assert revisits.wait_s() is None
    step = 0
    for pause_s in (0.03, 0.15, 0.6):
        revisits.plan(KEYS[0], step)
        assert revisits.take_due() == []
        assert revisits.wait_s() == pytest.approx(pause_s)
        now_s[0] += pause_s + 0.001
        assert revisits.wait_s() == 0
        ((key, step),) = revisits.take_due()
        assert key == KEYS[0]
    revisits.plan(KEYS[0], step)
    assert revisits.wait_s() is None


def test_the_plan_is_bounded() -> None:
    now_s = [0.0]
    revisits = Revisits(2, lambda: now_s[0])
    for key in KEYS:
        revisits.plan(key)
    now_s[0] = 1.0
    assert {key for key, _ in revisits.take_due()} == set(KEYS[:2])
