# SPDX-License-Identifier: Apache-2.0
"""Stacks with a mark of a missing part anywhere on their path are not whole."""

from server.query.merge import MergeBudget
from server.query.timerange import TimeRange
from server.query.whole_stacks import whole_shares
from tests.server.query.fakes import NOW_NS, START_NS, FakeStore

RANGE = TimeRange(START_NS, NOW_NS)


def store() -> FakeStore:
    found = FakeStore()
    stopped, cut = "[unwind stopped: no row]", "[truncated]"
    rows = [("shop", "a", "t", ["spin", "main"], 7), ("shop", "a", "t", ["spin", stopped], 23), ("shop", "b", "t", ["main", "f", cut], 10)]
    found.add([*rows, ("mail", "a", "t", ["f", "[jit]", "g"], 3)], START_NS)
    return found


def test_share_of_each_service() -> None:
    assert whole_shares(store(), RANGE) == {"shop": 7 / 40, "mail": 1.0}


def test_nothing_stored_has_no_share() -> None:
    assert whole_shares(FakeStore(), RANGE) == {}


def test_over_budget_there_is_no_figure() -> None:
    assert whole_shares(store(), RANGE, MergeBudget(rows=0)) == {}
