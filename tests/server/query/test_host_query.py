# SPDX-License-Identifier: Apache-2.0
"""Hosts by time: sums, nothing where a host was not there, zero where nothing ran."""

import numpy as np

from server.query.host_query import host_map
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.slots import choose_slots
from server.query.timerange import TimeRange
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore


def test_hosts_by_slot() -> None:
    store = FakeStore()
    for at, (a, b) in enumerate([(7, 0), (0, 100), (23, 0), (0, 11)]):
        for host, samples in (("a", a), ("b", b)):
            if samples:
                store.add([("shop", host, "t", ["main"], samples)], START_NS + at * WINDOW_NS)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    slots = choose_slots(TimeRange(START_NS, START_NS + 4 * WINDOW_NS), WINDOW_NS)
    found = host_map(query, parse_selector('cpu{service="shop"}'), slots, "samples")
    assert found.hosts == ("b", "a")
    np.testing.assert_array_equal(found.values, [[np.nan, 100, 0, 11], [7, 0, 23, np.nan]])
    cores = host_map(query, parse_selector("cpu{}"), slots).rates()
    assert cores[0, 1] == 100 * PERIOD_NS / WINDOW_NS
    empty = host_map(query, parse_selector('cpu{service="none"}'), slots)
    assert empty.hosts == () and empty.values.shape == (0, 4)
