# SPDX-License-Identifier: Apache-2.0
"""Two questions become one tree with two sides, whatever services, versions, hosts and threads they are of."""

import numpy as np
import pytest

from server.profile.changed import changed_functions
from server.profile.diff import Diff
from server.query.complaint import QueryError
from server.query.diff_query import DiffAnswer, diff_answer
from server.query.operators import Operators
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.profile.trees import path
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore, Row

SPAN = TimeRange(START_NS, START_NS + 20 * WINDOW_NS)


def answer(store: FakeStore, a: str, b: str, **more: object) -> DiffAnswer:
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    sides = [Question(parse_selector(text), SPAN, column="samples", **more) for text in (a, b)]  # type: ignore[arg-type]
    return diff_answer(query, sides[0], sides[1])


def stacks(diff: Diff) -> dict[tuple[str, ...], tuple[int, int]]:
    own = [(path(diff.a, n), (int(diff.a.own[n]), int(diff.b.own[n]))) for n in range(len(diff.tree))]
    return {frames: values for frames, values in own if any(values)}


def store_of(old: list[Row], new: list[Row], windows: int = 1) -> FakeStore:
    store = FakeStore()
    for window in range(windows):
        store.add(old, START_NS + window * WINDOW_NS, "1")
        store.add(new, START_NS + window * WINDOW_NS, "2")
    return store


def test_versions_of_a_service_side_by_side() -> None:
    store = store_of([("shop", "a", "t", ["main", "old"], 7)], [("shop", "b", "t", ["main", "new"], 23)], windows=4)
    found = answer(store, 'cpu{version="1"}', 'cpu{version="2"}')
    assert stacks(found.diff) == {("main", "old"): (28, 0), ("main", "new"): (0, 92)}
    assert (found.a.samples, found.b.samples, found.a.hosts, found.a.replicates, found.a.covered_s) == (28, 92, 1, 4, 40.0)
    assert found.a.text == 'cpu{version="1"}'
    assert any("different hosts" in note for note in found.notes)


def test_services_meet_by_name() -> None:
    store = store_of([("shop", "a", "t", ["main", "x"], 7)], [("mail", "a", "t", ["main", "x"], 23), ("mail", "a", "t", ["main"], 2)])
    found = answer(store, 'cpu{service="shop"}', 'cpu{service="mail"}')
    assert stacks(found.diff) == {("main", "x"): (7, 23), ("main",): (0, 2)}
    assert found.first_calls().sum() == len(found.diff.tree)


def test_places_without_names_are_told_when_versions_differ() -> None:
    store = store_of([("shop", "a", "t", ["?x"], 7)], [("shop", "a", "t", ["?longer"], 6), ("shop", "a", "t", ["main"], 2)])
    found = answer(store, 'cpu{version="1"}', 'cpu{version="2"}')
    assert len(stacks(found.diff)) == 3
    assert found.notes[-1].startswith("100.0 % of side A and 75.0 % of side B end in frames without names")
    assert not any("without names" in note for note in answer(store, "cpu{}", "cpu{}").notes)


def test_threads_above_and_leaves_first() -> None:
    rows: list[Row] = [("shop", "a", "w", ["main", "x"], 7), ("shop", "a", "io", ["main", "y"], 3)]
    store = store_of(rows, [("shop", "a", "w", ["main", "x"], 23)])
    sides = 'cpu{version="1"}', 'cpu{version="2"}'
    assert stacks(answer(store, *sides, group="thread").diff) == {("w", "main", "x"): (7, 23), ("io", "main", "y"): (3, 0)}
    assert stacks(answer(store, *sides, operators=Operators(is_inverted=True)).diff) == {("x", "main"): (7, 23), ("y", "main"): (3, 0)}


def test_the_same_question_twice_is_no_change() -> None:
    store = store_of([("shop", "a", "t", ["main", "x"], 700)], [("mail", "b", "t", ["main"], 23)], windows=3)
    found = answer(store, "cpu{}", "cpu{}")
    assert not found.diff.changes().any()
    assert found.diff.spread.rows.size
    assert not found.diff.spread.is_beyond.any()
    assert found.notes == ()


def test_an_empty_side_is_said() -> None:
    store = store_of([("shop", "a", "t", ["main"], 70)], [])
    found = answer(store, "cpu{}", 'cpu{version="none"}')
    assert found.notes == ("side B is empty", "nothing can be compared: no change is marked")
    assert stacks(found.diff) == {("main",): (70, 0)}
    nothing = answer(FakeStore(), "cpu{}", "cpu{}")
    assert nothing.notes[:2] == ("side A is empty", "side B is empty")
    assert len(nothing.diff.tree) == 1


def test_one_window_is_said_to_be_one_piece() -> None:
    store = store_of([("shop", "a", "t", ["main"], 70)], [("shop", "a", "t", ["main"], 70)])
    (note,) = answer(store, 'cpu{version="1"}', 'cpu{version="2"}').notes
    assert note.startswith("both sides are one piece")


def test_kinds_are_not_mixed() -> None:
    with pytest.raises(QueryError, match="only one kind"):
        answer(FakeStore(), "cpu{}", "overhead{}")


def test_time_is_the_width_when_nothing_is_said() -> None:
    query = ProfileQuery(store_of([("shop", "a", "t", ["main"], 7)], []), FakeNamer(), lambda: NOW_NS)
    question = Question(parse_selector("cpu{}"), SPAN)
    found = diff_answer(query, question, question)
    assert (found.column.name, found.diff.a.sum, np.unique(found.diff.changes()).tolist()) == ("ns", 7 * PERIOD_NS, [0.0])


def test_frames_without_names_of_two_builds_are_no_change_and_their_share_is_said() -> None:
    store = FakeStore()
    store.add([("shop", "a", "w", ["main", "?old", "f"], 1000), ("shop", "a", "w", ["main", "?old"], 1000)], START_NS, "1")
    store.add([("shop", "a", "w", ["main", "?new", "f"], 1000), ("shop", "a", "w", ["main", "?new"], 1000)], START_NS, "2")
    found = answer(store, 'cpu{version="1"}', 'cpu{version="2"}')
    assert any("other places in another build" in note for note in found.notes)
    assert not found.diff.is_beyond().any()
    assert not changed_functions(found.diff, found.first_calls()).is_beyond.any()
