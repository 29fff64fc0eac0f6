# SPDX-License-Identifier: Apache-2.0
"""Relative changes of means: worked by hand, covered as often as promised, honest about too little."""

import numpy as np
import pytest

from server.profile.means import BLOCKS, blocks, paired_change, pairs_of, relative_change, replicates_of


def test_a_change_by_hand() -> None:
    # Means 2 and 3, variances 1 and 1 of 3 values: V = 1.5^2 (1/12 + 1/27), 4 - 2 = about 3.5 degrees of freedom.
    found = relative_change(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    assert found is not None and found.low is not None and found.high is not None
    assert found.change == pytest.approx(0.5)
    assert (found.high - found.low) / 2 == pytest.approx(2.94 * 1.5 * (1 / 12 + 1 / 27) ** 0.5, rel=0.02)
    assert found.is_noise


def test_what_cannot_be_told() -> None:
    one, some, none = np.array([2.0]), np.array([1.0, 1.0]), np.zeros(0)
    assert relative_change(none, some) is None and relative_change(np.zeros(3), some) is None
    single = relative_change(one, some)
    assert single is not None and single.is_noise and single.low is None
    equal = relative_change(some, 2 * some)
    assert equal is not None and not equal.is_noise and equal.low == equal.high == 1.0


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(11)
    held = 0
    for _ in range(1000):
        found = relative_change(random.normal(10, 1, 6), random.normal(12, 2, 9))
        assert found is not None and found.low is not None and found.high is not None
        held += found.low <= 0.2 <= found.high
    assert 920 <= held <= 980  # 950 expected, standard deviation 7


def test_many_hosts_are_one_replicate_each_and_few_are_cut_by_time() -> None:
    few, many = np.ones((2, 40)), np.ones((5, 40))
    assert [side.size for side in replicates_of(many, many)] == [5, 5]
    assert [side.size for side in replicates_of(few, many)] == [2 * BLOCKS, 5 * BLOCKS]


def test_blocks_leave_out_what_was_not_there() -> None:
    values = np.array([[np.nan, 1.0, 3.0, np.nan], [np.nan, np.nan, np.nan, np.nan], [2.0, 2.0, 4.0, 4.0]])
    assert blocks(values, 1).tolist() == [2.0, 3.0]
    assert blocks(values, 2).tolist() == [1.0, 3.0, 2.0, 4.0]
    assert blocks(np.zeros((0, 4)), 8).size == 0


def test_what_both_sides_share_in_the_same_minutes_is_no_noise() -> None:
    random = np.random.default_rng(3)
    weather = np.exp(np.repeat(random.normal(0, 0.5, 8), 20))  # wanders slower than a stretch is long
    a, b = (np.array([level * weather * np.exp(random.normal(0, 0.05, 160))]) for level in (1.0, 0.9))
    alone, together = relative_change(*replicates_of(a, b)), paired_change(*pairs_of(a, b))
    assert alone is not None and alone.is_noise
    assert together is not None and together.high is not None and together.low is not None
    assert together.low < -0.1 < together.high < -0.05


def test_pairs_are_of_slots_in_which_both_were_there() -> None:
    a, b = np.array([[np.nan, 2.0, 4.0, 6.0]]), np.array([[1.0, 1.0, np.nan, np.nan], [np.nan, 3.0, np.nan, 5.0]])
    assert [side.tolist() for side in pairs_of(a, b)] == [[2.0, 6.0], [2.0, 5.0]]
    assert paired_change(np.zeros(0), np.zeros(0)) is None and paired_change(np.zeros(3), np.ones(3)) is None
    one = paired_change(np.array([2.0]), np.array([1.0]))
    assert one is not None and one.change == -0.5 and one.is_noise
    gone = paired_change(np.ones(3), np.zeros(3))
    assert gone is not None and gone.change == -1.0 and gone.is_noise
