# SPDX-License-Identifier: Apache-2.0
"""Conditions on rows choose among the rows of the series, in every question alike."""

from pathlib import Path

import pytest

from server.query.complaint import QueryError
from server.query.diff_query import diff_answer
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.slots import choose_slots
from server.query.timeline_query import line
from server.query.timerange import TimeRange
from tests.server.profile.trees import totals_of
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_store, query_of

MINUTE_NS = 60 * 10**9
SPAN = TimeRange(START_UNIX_NS, START_UNIX_NS + MINUTE_NS)
ROWS = [
    EventRow({"count": 7, "ns": 700}, stack=["main", "take"], thread="worker-N", wait_class="lock"),
    EventRow({"count": 23, "ns": 2300}, stack=["main", "take"], thread="main", wait_class="lock"),
    EventRow({"count": 2, "ns": 200}, stack=["main", "read"], thread="worker-N", wait_class="disk"),
    EventRow({"count": 5, "ns": 500}, stack=["main", "take"], service="mail", wait_class="lock"),
]


@pytest.fixture
def query(tmp_path: Path) -> ProfileQuery:
    return query_of(event_store(tmp_path, [(0, Window({"offcpu": ROWS}))]))


def total(query: ProfileQuery, text: str) -> tuple[int, int]:
    profile = query.profile(Question(parse_selector(text), SPAN))
    return profile.weighed.sum, profile.samples


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("offcpu{}", 37),
        ('offcpu{class="lock"}', 35),
        ('offcpu{class="lock",service="shop"}', 30),
        ('offcpu{class!="lock"}', 2),
        ('offcpu{class=~"d.*|l.*",thread="worker-N"}', 9),
        ('offcpu{thread=""}', 5),
        ('offcpu{object="x"}', 0),
    ],
)
def test_rows_are_chosen_by_their_labels(query: ProfileQuery, text: str, count: int) -> None:
    assert total(query, text) == (count * 100, count)


def test_a_row_label_is_no_label_of_series(query: ProfileQuery) -> None:
    chosen = query.choose(parse_selector('offcpu{class="none"}'), SPAN)
    assert (len(chosen.series), chosen.is_all) == (2, True)
    with pytest.raises(QueryError, match="no series has a label 'klass'") as raised:
        query.choose(parse_selector('offcpu{klass="lock"}'), SPAN)
    assert raised.value.hint == "did you mean class?"


def test_a_diff_compares_the_rows_alone(query: ProfileQuery) -> None:
    sides = [Question(parse_selector(f'offcpu{{service="shop",class="{name}"}}'), SPAN) for name in ("lock", "disk")]
    diff = diff_answer(query, *sides)
    assert (diff.a.samples, diff.b.samples, diff.diff.a.sum, diff.diff.b.sum) == (30, 2, 3000, 200)


def test_a_line_of_rows_has_whole_minutes(query: ProfileQuery) -> None:
    found = line(query, parse_selector('offcpu{class="lock"}'), choose_slots(SPAN, 10 * 10**9))
    assert (found.slots.step_ns, found.slots.range.from_unix_ns % MINUTE_NS) == (MINUTE_NS, 0)
    assert found.values == [3500, None]


def test_graphs_and_diffs_are_grouped_by_rows(query: ProfileQuery) -> None:
    asked = Question(parse_selector('offcpu{service="shop"}'), SPAN, group="class")
    assert totals_of(query.profile(asked).weighed) == {
        (): 3200,
        ("lock",): 3000,
        ("lock", "main"): 3000,
        ("lock", "main", "take"): 3000,
        ("disk",): 200,
        ("disk", "main"): 200,
        ("disk", "main", "read"): 200,
    }
    assert diff_answer(query, asked, asked).diff.a.sum == 3200
