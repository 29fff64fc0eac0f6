# SPDX-License-Identifier: Apache-2.0
"""Against the tables of textbooks."""

import numpy as np
import pytest

from server.profile.noise import KNOWN, discoveries, normal_deviates, t_limits, two_sided


@pytest.mark.parametrize(("freedom", "limit"), [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (KNOWN, 1.960)])
def test_interval_is_that_of_students_table(freedom: float, limit: float) -> None:
    assert t_limits(np.array([freedom]))[0] == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize(("freedom", "limit"), [(1, 12.706), (2, 4.303)])
def test_interval_of_hardly_any_replicates_is_not_too_narrow(freedom: float, limit: float) -> None:
    assert t_limits(np.array([freedom]))[0] >= limit


def test_probability_is_that_of_the_normal_table() -> None:
    found = two_sided(np.array([0.0, 1.0, 1.959964, 3.290527, -6.0]))
    assert found == pytest.approx([1.0, 0.317311, 0.05, 0.001, 1.973175e-9], rel=1e-5)


def test_a_limit_is_as_improbable_as_it_says() -> None:
    freedom = np.array([3.0, 14.0, KNOWN])
    assert two_sided(normal_deviates(t_limits(freedom), freedom)) == pytest.approx(0.05)


def test_benjamini_and_hochberg_by_hand() -> None:
    # Bounds are 0.01, 0.02, 0.03, 0.04, 0.05: the fourth smallest is the last below its bound, and takes the first three along.
    assert discoveries(np.array([0.9, 0.039, 0.025, 0.0099, 0.021])).tolist() == [False, True, True, True, True]


def test_nothing_is_discovered_among_nothing() -> None:
    assert discoveries(np.zeros(0)).tolist() == []
    assert discoveries(np.array([0.06, 0.5])).tolist() == [False, False]
