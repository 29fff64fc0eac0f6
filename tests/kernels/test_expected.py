# SPDX-License-Identifier: Apache-2.0
"""The table itself: every series has a row or takes that of the one before."""

from agent.kernel.capabilities import OLDEST_KERNEL
from agent.kernel.program import unwinding_denial
from tests.kernels.expected import EXPECTATIONS, REQUIRED, expectation
from tests.kernels.offers import OLDEST_SERIES


def test_series_without_a_row_is_expected_to_be_like_the_one_before() -> None:
    assert expectation("6.12") is EXPECTATIONS["6.12"]
    assert expectation("6.11") is EXPECTATIONS["6.1"]
    assert expectation("7.3") is EXPECTATIONS["6.12"]
    assert expectation("5.4") is None


def test_required_series_have_rows_and_the_oldest_supported_one() -> None:
    assert set(REQUIRED) <= EXPECTATIONS.keys()
    assert OLDEST_SERIES == OLDEST_KERNEL
    assert "5.10" in EXPECTATIONS


def test_unwinding_is_expected_where_the_deny_list_lets_it() -> None:
    """Of the last release that Debian made of each series."""
    for series, release in (("5.10", "5.10.234"), ("6.1", "6.1.192"), ("6.12", "6.12.117")):
        assert EXPECTATIONS[series].is_unwinding is (unwinding_denial(release) == "")
