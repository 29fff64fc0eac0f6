# SPDX-License-Identifier: Apache-2.0
"""Values over time add up, whatever the number of series read at once."""

import pytest

from server.query import slot_sums
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.slots import choose_slots
from server.query.timeline_query import line
from server.query.timerange import TimeRange
from server.store.protocol import AccountSlot
from tests.server.query.fakes import NOW_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore

SLOTS = choose_slots(TimeRange(START_NS, NOW_NS), 20 * 10**9)


def made() -> tuple[FakeStore, ProfileQuery]:
    store = FakeStore()
    store.add([("shop", "a", "t", ["f"], 7), ("shop", "b", "t", ["f"], 23), ("mail", "a", "t", ["f"], 2)])
    store.add([("shop", "b", "t", ["f"], 11)], START_NS + WINDOW_NS)
    store.add([("shop", "a", "t", ["f"], 3)], START_NS + 5 * WINDOW_NS)
    return store, ProfileQuery(store, FakeNamer(), lambda: NOW_NS)


@pytest.mark.parametrize("cells", [1, 6, 1000])
def test_sums_do_not_depend_on_how_much_is_read_at_once(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_sums, "MOST_CELLS", cells)
    _, query = made()
    assert line(query, parse_selector("cpu"), SLOTS, "samples").values == [43, None, 3]
    assert line(query, parse_selector('cpu{host="b"}'), SLOTS, "samples").values == [34, None, None]


def test_losses_are_those_of_the_hosts_asked_for() -> None:
    store, query = made()
    store.account_slots = [
        AccountSlot(b"a", "a", START_NS, 100, 93, 0, 0, {1: 7}),
        AccountSlot(b"b", "b", START_NS, 100, 77, 0, 0, {3: 23}),
    ]
    assert line(query, parse_selector("cpu"), SLOTS).loss == [0.15, 0.0, 0.0]
    assert line(query, parse_selector('cpu{host="b"}'), SLOTS).loss == [0.23, 0.0, 0.0]


def test_a_selector_without_series_has_no_values() -> None:
    _, query = made()
    assert line(query, parse_selector('cpu{service="nobody"}'), SLOTS).values == [None, None, None]
