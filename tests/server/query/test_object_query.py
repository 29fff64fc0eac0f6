# SPDX-License-Identifier: Apache-2.0
"""The table by object: every column merged in its way, calls with their errors, functions that wait and hold."""

from pathlib import Path

import pytest

from server.query.complaint import QueryError
from server.query.grouping import By
from server.query.object_query import functions_by_object, object_table
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_store, query_of, timed
from tests.support.pushes import MINUTE_NS, compact_all

SPAN = TimeRange(START_UNIX_NS, START_UNIX_NS + 10 * MINUTE_NS)
US = 1000
CALLS = [
    EventRow(timed(*[3 * US] * 7, 900 * US), object="read"),
    EventRow(timed(*[2 * US] * 23), object="openat:ENOENT"),
    EventRow(timed(*[2 * US] * 2), object="openat:EACCES"),
    EventRow(timed(*[5 * US] * 5), object="openat"),
    EventRow(timed(11 * US), object="read", service="mail"),
]
LOCKS = [
    EventRow(timed(*[US] * 7), stack=["main", "take"], second=["main", "hold"], object="mutex a"),
    EventRow(timed(*[US] * 2), stack=["main", "grab"], second=["main", "keep"], object="mutex a"),
    EventRow(timed(*[US] * 23), stack=["main", "grab"], object="mutex b"),
]


@pytest.fixture
def query(tmp_path: Path) -> ProfileQuery:
    windows = [
        (0, Window({"syscall": CALLS, "lock": LOCKS})),
        (70, Window({"syscall": [EventRow(timed(7 * US), object="read")]}, host=b"web-2")),
    ]
    store = event_store(tmp_path, windows)
    compact_all(store, START_UNIX_NS + 4 * MINUTE_NS)  # the first minute is in blocks, the second is not
    return query_of(store)


def rows(query: ProfileQuery, text: str, by: By, sort: str = "", limit: int = 100) -> list[tuple[str, int, int, int]]:
    found = object_table(query, parse_selector(text), SPAN, by, (sort, limit))
    columns = [found.values[name].tolist() for name in ("count", "ns", "max_ns")]
    return list(zip(found.names, *columns, strict=True))


def test_columns_merge_each_in_its_way(query: ProfileQuery) -> None:
    assert rows(query, "syscall{}", By.OBJECT) == [
        ("read", 10, 939 * US, 900 * US),
        ("openat:ENOENT", 23, 46 * US, 2 * US),
        ("openat", 5, 25 * US, 5 * US),
        ("openat:EACCES", 2, 4 * US, 2 * US),
    ]


def test_errors_are_told_beside_their_call(query: ProfileQuery) -> None:
    found = object_table(query, parse_selector("syscall{}"), SPAN, By.CALL, ("count", 1))
    assert (list(found.names), found.rows_total, found.totals["count"]) == (["openat"], 2, 40)
    assert found.errors == {"openat": [("ENOENT", 23), ("EACCES", 2)]}
    assert found.histograms["bucket"].counts.tolist()[0][:5] == [0, 0, 25, 5, 0]


def test_quantiles_come_from_the_buckets_of_all_windows(query: ProfileQuery) -> None:
    found = object_table(query, parse_selector('syscall{object="read"}'), SPAN, By.OBJECT, ("", 10))
    buckets = found.histograms["bucket"]
    assert buckets.counts.sum() == 10
    assert 2 * US <= buckets.p50_ns[0] <= 4 * US
    assert buckets.p99_ns[0] == 900 * US  # in [512, 1024) us, and never above the largest


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (By.SERVICE, [("shop", 39), ("mail", 1)]),
        (By.HOST, [("web-1", 39), ("web-2", 1)]),
        (By.CLASS, [("", 40)]),
    ],
)
def test_other_groupings(query: ProfileQuery, by: By, expected: list[tuple[str, int]]) -> None:
    assert [(name, count) for name, count, _, _ in rows(query, "syscall{}", by, "count")] == expected


def test_series_labels_choose_too(query: ProfileQuery) -> None:
    assert [name for name, *_ in rows(query, 'syscall{service="mail"}', By.OBJECT)] == ["read"]
    assert rows(query, 'syscall{host="web-2"}', By.OBJECT) == [("read", 1, 7 * US, 7 * US)]


def test_functions_that_wait_and_hold(query: ProfileQuery) -> None:
    found = functions_by_object(query, parse_selector("lock{}"), SPAN)
    assert found[By.FIRST] == {
        "mutex a": [("take", pytest.approx(7 / 9)), ("grab", pytest.approx(2 / 9))],
        "mutex b": [("grab", 1.0)],
    }
    assert found[By.SECOND]["mutex b"] == [("", 1.0)]
    assert [(name, count) for name, count, _, _ in rows(query, "lock{}", By.SECOND, "count")] == [("", 23), ("hold", 7), ("keep", 2)]


def test_nothing_is_an_empty_table(query: ProfileQuery) -> None:
    found = object_table(query, parse_selector('syscall{service="none"}'), SPAN, By.CALL, ("", 10))
    assert (list(found.names), found.rows_total, found.totals["ns"], found.covered_ns) == ([], 0, 0, 0)


def test_an_unknown_column_is_told(query: ProfileQuery) -> None:
    with pytest.raises(QueryError, match="no column 'nss' to sort by"):
        object_table(query, parse_selector("syscall{}"), SPAN, By.OBJECT, ("nss", 10))
