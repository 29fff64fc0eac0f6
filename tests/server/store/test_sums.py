# SPDX-License-Identifier: Apache-2.0
"""Sums and maxima by group, exact at any size and over the edges of runs."""

import numpy as np
import pytest

from server.store import sums
from server.store.sums import MultipleSums, add_by_group, merge_rows, raise_by_group


def test_sums_are_exact_beyond_float64() -> None:
    totals = np.zeros(3, np.uint64)
    add_by_group(totals, np.array([1, 1, 2]), np.array([2**60 + 1, 2**60 + 1, 7], np.uint64))
    assert totals.tolist() == [0, 2**61 + 2, 7]


def test_narrow_values_over_several_runs_add_up() -> None:
    count = 2 * 262_144 + 7
    totals = np.zeros(2, np.uint64)
    add_by_group(totals, np.arange(count) % 2, np.full(count, 200, np.uint8))
    assert totals.tolist() == [(count + 1) // 2 * 200, count // 2 * 200]


@pytest.mark.parametrize("most", [(1 << 32) - 1, 200, 20])
def test_multiples_add_up_exactly_whatever_comes_between(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that change, counts of 64 bits, and sums that pass the bound before they are carried over."""
    monkeypatch.setattr(sums, "_MOST_COUNTED", most)
    random = np.random.default_rng(7)
    totals, expected = np.zeros(5, np.uint64), [0] * 5
    adding = MultipleSums(totals)
    for turn in range(60):
        groups, counts = random.integers(0, 5, 9), random.integers(0, 8, 9).astype((np.uint8, np.uint16, np.uint64)[turn % 3])
        factor = 10_000_019 if turn % 7 else 2**40 + 1
        adding.add(groups, counts, factor, int(counts.sum()))
        for group, count in zip(groups.tolist(), counts.tolist(), strict=True):
            expected[group] += count * factor
        if turn % 20 == 19:
            adding.settle()
            assert totals.tolist() == expected


def test_maxima_stay_when_nothing_is_larger() -> None:
    largest = np.array([5, 0], np.uint64)
    raise_by_group(largest, np.array([0, 0, 1]), np.array([3, 4, 2**63], np.uint64))
    assert largest.tolist() == [5, 2**63]


def test_equal_rows_become_one_by_sum_or_by_max() -> None:
    values = np.array([7, 23, 5, 2], np.uint64)
    first, merged = merge_rows(np.array([9, 4, 9, 6]), {"sum": (values, False), "max": (values, True)})
    assert first.tolist() == [1, 3, 0]
    assert (merged["sum"].tolist(), merged["max"].tolist()) == ([23, 2, 12], [23, 2, 7])


def test_no_rows_stay_none() -> None:
    first, merged = merge_rows(np.zeros(0, np.int64), {"sum": (np.zeros(0, np.uint64), False)})
    assert (first.size, merged["sum"].size) == (0, 0)
