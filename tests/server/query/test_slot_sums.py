# SPDX-License-Identifier: Apache-2.0
"""Columns over time: from the index to the window, from rows to the minute, in blocks and before."""

from pathlib import Path

import numpy as np
import pytest

from server.query.columns_query import columns_over_time
from server.query.heatmap_query import heatmap
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.slots import choose_slots
from server.query.timerange import TimeRange
from tests.support.event_batches import EventRow, Window, event_store, query_of, timed
from tests.support.pushes import MINUTE_NS, MINUTE_UNIX_NS, START_UNIX_NS, compact_all

MS = 10**6
FIRST_S = (MINUTE_UNIX_NS + MINUTE_NS - START_UNIX_NS) // 10**9
"""Seconds from START_UNIX_NS to the next full minute, which is minute 0 here."""
MINUTE_0 = START_UNIX_NS + FIRST_S * 10**9
SPAN = TimeRange(MINUTE_0, MINUTE_0 + 3 * MINUTE_NS)


@pytest.fixture(params=[False, True], ids=["batches", "blocks"])
def query(tmp_path: Path, request: pytest.FixtureRequest) -> ProfileQuery:
    def window(ms: int, threads: int) -> Window:
        rows = [EventRow(timed(ms * MS), object="read"), EventRow(timed(*[MS] * 2), object="write")]
        return Window({"syscall": rows, "time": [EventRow({"switches": 7, "cpu_ns": ms * MS, "poll_ns": 23, "threads": threads})]})

    store = event_store(tmp_path, [(FIRST_S + 10, window(3, 5)), (FIRST_S + 50, window(5, 2)), (FIRST_S + 130, window(100, 3))])
    if request.param:
        compact_all(store, MINUTE_0 + 60 * MINUTE_NS)
    return query_of(store)


def test_the_index_is_exact_to_a_window(query: ProfileQuery) -> None:
    found = columns_over_time(query, parse_selector("time{}"), choose_slots(SPAN, 60 * 10**9))
    assert found.values["cpu_ns"].tolist() == [8 * MS, 0, 100 * MS]
    assert found.values["threads"].tolist() == [5, 0, 3]
    assert found.values["disk_ns"].tolist() == [0, 0, 0] if "disk_ns" in found.values else True
    assert found.has_data.tolist() == [True, False, True]
    fine = columns_over_time(query, parse_selector("time{}"), choose_slots(SPAN, 10 * 10**9))
    assert np.flatnonzero(fine.values["cpu_ns"]).tolist() == [1, 5, 13]


def test_a_heat_map_of_all_calls(query: ProfileQuery) -> None:
    found = heatmap(query, parse_selector("syscall{}"), choose_slots(SPAN, 60 * 10**9))
    assert found.counts.sum(axis=1).tolist() == [6, 0, 3]
    assert found.counts[0, 10] == 4  # 1 ms lies in [512, 1024) us
    assert np.isnan(found.p50_ns[1])


def test_a_heat_map_of_one_call_has_minutes(query: ProfileQuery) -> None:
    found = heatmap(query, parse_selector('syscall{object="read"}'), choose_slots(SPAN, 10 * 10**9))
    assert found.slots.step_ns == MINUTE_NS
    assert found.counts.sum(axis=1).tolist() == [2, 0, 1]
    assert found.p99_ns[2] == pytest.approx(131_072_000)  # the upper edge of [65.5, 131) ms


def test_a_largest_value_of_rows_is_the_largest(query: ProfileQuery) -> None:
    found = columns_over_time(query, parse_selector('syscall{object="write"}'), choose_slots(SPAN, 60 * 10**9))
    assert (found.values["max_ns"].tolist(), found.values["count"].tolist()) == ([MS, 0, MS], [4, 0, 2])


def test_a_window_without_events_is_zero_and_not_a_gap(tmp_path: Path) -> None:
    lock = EventRow(timed(7 * MS), object="mutex")
    windows = [(FIRST_S, Window({"lock": [lock]})), (FIRST_S + 10, Window({"lock": []})), (FIRST_S + 50, Window({"lock": []}))]
    windows += [(FIRST_S + 30, Window({"lock": []}, host=b"web-9"))]  # of a host that the service did not run on
    span = TimeRange(MINUTE_0, MINUTE_0 + MINUTE_NS)
    found = heatmap(query_of(event_store(tmp_path, windows)), parse_selector("lock{}"), choose_slots(span, 10 * 10**9))
    assert found.has_data.tolist() == [True, True, False, False, False, True]
    assert found.counts.sum(axis=1).tolist() == [1, 0, 0, 0, 0, 0]
