# SPDX-License-Identifier: Apache-2.0
"""Waiting for work is told apart by class and, where many threads stand on one stack and are hardly woken, by symmetry."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.query.diff_query import diff_answer
from server.query.idle import ALIKE, Idle
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_store, query_of

S = 10**9
SPAN = TimeRange(START_UNIX_NS, START_UNIX_NS + 60 * S)
ROWS = [
    EventRow({"count": 7, "ns": 7 * S}, stack=["main", "loop"], wait_class="poll"),
    EventRow({"count": 2, "ns": 2 * S}, stack=["main", "rest"], wait_class="sleep"),
    # Of a window of 10 s: 8 threads that were never woken; 8 that are woken each 10 ms; 8 behind one lock; 2 that were never woken.
    EventRow({"count": 8, "ns": 80 * S}, stack=["pool", "take"], wait_class="pipe"),
    EventRow({"count": 8000, "ns": 80 * S}, stack=["pool", "ask"], wait_class="net"),
    EventRow({"count": 8, "ns": 80 * S}, stack=["pool", "enter"], wait_class="lock"),
    EventRow({"count": 2, "ns": 20 * S}, stack=["pair", "recv"], wait_class="net"),
]
ALL_S = 7 + 2 + 80 * 3 + 20


@pytest.fixture
def query(tmp_path: Path) -> ProfileQuery:
    return query_of(event_store(tmp_path, [(0, Window({"offcpu": ROWS}))]))


@pytest.mark.parametrize(("idle", "seconds"), [(Idle.SHOW, ALL_S), (Idle.HIDE, ALL_S - 89), (Idle.ONLY, 89)])
def test_what_waits_for_work_is_hidden_or_shown_alone(query: ProfileQuery, idle: Idle, seconds: int) -> None:
    profile = query.profile(Question(parse_selector("offcpu{}"), SPAN, idle=idle))
    assert profile.weighed.sum == seconds * S
    assert profile.idle is not None
    assert (profile.idle.total, profile.idle.idle) == (ALL_S * S, 89 * S)
    assert profile.idle.by == {"poll": 7 * S, "sleep": 2 * S, ALIKE: 80 * S}


def test_threads_alike_on_several_hosts_are_counted_by_host(tmp_path: Path) -> None:
    rows = {"offcpu": [EventRow({"count": 3, "ns": 30 * S}, stack=["pool", "take"], wait_class="pipe")]}
    query = query_of(event_store(tmp_path, [(0, Window(rows, host)) for host in (b"web-1", b"web-2")]))
    profile = query.profile(Question(parse_selector("offcpu{}"), SPAN, idle=Idle.HIDE))
    assert profile.weighed.sum == 60 * S  # three on each, which are too few


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({"second": ["ask", "b"]}, 0),
        ({"second": ["ask", "b"], "stack": ["pool", "other"]}, 60),
        ({"second": ["ask", "b"], "thread": "other"}, 60),
        ({"second": ["ask", "b"], "wait_class": "net"}, 60),
        ({"second": ["ask", "b"], "values": {"count": 3000, "ns": 30 * S}}, 60),
    ],
)
def test_threads_alike_are_one_pool_whoever_wakes_them(tmp_path: Path, changed: dict[str, Any], seconds: int) -> None:
    """Three threads that one woke, and three that another did."""
    pool = EventRow({"count": 3, "ns": 30 * S}, stack=["pool", "take"], second=["ask", "a"], wait_class="pipe", thread="io-N")
    query = query_of(event_store(tmp_path, [(0, Window({"offcpu": [pool, replace(pool, **changed)]}))]))
    profile = query.profile(Question(parse_selector("offcpu{}"), SPAN, idle=Idle.HIDE))
    assert profile.weighed.sum == seconds * S


def test_without_a_wait_that_could_be_a_pool_there_is_none(tmp_path: Path) -> None:
    query = query_of(
        event_store(tmp_path, [(0, Window({"offcpu": [EventRow({"count": 8, "ns": 80 * S}, stack=["a"], wait_class="lock")]}))])
    )
    profile = query.profile(Question(parse_selector("offcpu{}"), SPAN, idle=Idle.HIDE))
    assert (profile.weighed.sum, profile.idle and profile.idle.by) == (80 * S, {})


def test_other_kinds_have_no_idle(tmp_path: Path) -> None:
    query = query_of(event_store(tmp_path, [(0, Window({"runqueue": [EventRow({"count": 7, "ns": 7}, wait_class="poll")]}))]))
    profile = query.profile(Question(parse_selector("runqueue{}"), SPAN, idle=Idle.HIDE))
    assert (profile.idle, profile.weighed.sum) == (None, 7)


def test_a_diff_hides_by_class(query: ProfileQuery) -> None:
    sides = [Question(parse_selector("offcpu{}"), SPAN, idle=idle) for idle in (Idle.HIDE, Idle.ONLY)]
    diff = diff_answer(query, *sides)
    assert (diff.diff.a.sum, diff.diff.b.sum) == ((ALL_S - 9) * S, 9 * S)
