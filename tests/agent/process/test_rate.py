# SPDX-License-Identifier: Apache-2.0
"""Tests of the budget that fills with time."""

from agent.process.rate import RateLimit


def test_a_burst_is_followed_by_the_rate() -> None:
    now_s = [100.0]
    limit = RateLimit(per_s=2, burst=7, now_s=lambda: now_s[0])
    assert sum(limit.take() for _ in range(23)) == 7
    now_s[0] += 1.5
    assert sum(limit.take() for _ in range(23)) == 3
    now_s[0] += 1000
    assert sum(limit.take() for _ in range(23)) == 7


def test_debts_are_paid_before_more_is_given() -> None:
    now_s = [0.0]
    limit = RateLimit(per_s=1, burst=2, now_s=lambda: now_s[0])
    limit.charge(5)
    now_s[0] = 3.5
    assert not limit.take()
    now_s[0] = 4
    assert limit.take()


def test_what_is_kept_for_others_is_not_given() -> None:
    rate = RateLimit(0, 4, lambda: 0.0)
    assert [rate.take(reserve=2) for _ in range(3)] == [True, True, False]
    assert [rate.take() for _ in range(3)] == [True, True, False]
