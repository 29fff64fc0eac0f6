# SPDX-License-Identifier: Apache-2.0
"""Sides in groups: every group is compared with itself, nothing is lost, and which host changed is seen beyond noise."""

import numpy as np
import pytest

from server.errors import LimitExceeded
from server.query import sides
from server.query.chosen import MOST_GROUPS
from server.query.complaint import QueryError
from server.query.diff_query import DiffAnswer, diff_answer
from server.query.merge import MergeBudget, Meter
from server.query.profile_query import ProfileQuery, Question
from server.query.replicates import Groups
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.profile.trees import path
from tests.server.query.fakes import NOW_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore

LENGTH_NS = 40 * WINDOW_NS
BEFORE, AFTER = TimeRange(START_NS, START_NS + LENGTH_NS), TimeRange(START_NS + LENGTH_NS, START_NS + 2 * LENGTH_NS)


def store_of(hosts: int, grown: str = "") -> FakeStore:
    """Windows in which each host spends 300 samples, give or take, in f and 700 in g; later 400 in f on the host that has `grown`."""
    store, random = FakeStore(), np.random.default_rng(7)
    for window in range(80):
        for number in range(hosts):
            host, more = f"h{number}", 100 if window >= 40 else 0
            parse = int(random.poisson(300)) + (more if f"h{number}" == grown else 0)
            rows = [("shop", host, "t", ["main", "f"], parse), ("shop", host, "t", ["main", "g"], 700)]
            store.add(rows, START_NS + window * WINDOW_NS, "2" if number % 2 else "1")
    return store


def answer(store: FakeStore, group: str, text: str = "cpu{}") -> DiffAnswer:
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    a, b = (Question(parse_selector(text), span, column="samples", group=group) for span in (BEFORE, AFTER))
    return diff_answer(query, a, b)


def beyond(found: DiffAnswer) -> set[tuple[str, ...]]:
    return {path(found.diff.a, node) for node in np.flatnonzero(found.diff.is_beyond()).tolist()}


def test_which_host_changed_is_told() -> None:
    found = answer(store_of(hosts=4, grown="h2"), "host")
    assert ("h2", "main", "f") in beyond(found)
    # All others have less of the whole then, and nothing of theirs has more.
    tops = {frames[0] for frames in beyond(found)}
    changes = dict(zip([path(found.diff.a, n) for n in range(len(found.diff.tree))], found.diff.changes().tolist(), strict=True))
    assert all(changes[frames] < 0 for frames in beyond(found) if frames[0] != "h2"), tops
    assert (found.a.hosts, found.a.replicates, found.a.covered_s) == (4, 32, 400.0)


def test_nothing_is_lost_or_changed_by_grouping() -> None:
    store = store_of(hosts=4, grown="h2")
    plain = answer(store, "")
    for group in ("host", "version", "service", "zone"):
        found = answer(store, group)
        for one, whole in ((found.a, plain.a), (found.b, plain.b)):
            assert (one.samples, one.hosts, one.covered_s) == (whole.samples, whole.hosts, whole.covered_s)
        assert (found.diff.a.sum, found.diff.b.sum) == (plain.diff.a.sum, plain.diff.b.sum)
        assert found.diff.side_a.observed == plain.diff.side_a.observed


def test_the_same_twice_is_no_change_in_any_group() -> None:
    store = store_of(hosts=3)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    question = Question(parse_selector("cpu{}"), BEFORE, column="samples", group="host")
    found = diff_answer(query, question, question).diff
    assert not found.changes().any() and not found.is_beyond().any()


def test_both_sides_have_the_same_groups_however_many_there_are() -> None:
    store, hosts = FakeStore(), MOST_GROUPS + 3
    for number in range(hosts):
        store.add([("shop", f"h{number}", "t", ["main"], 100 + number)], START_NS)
        store.add([("shop", f"h{number}", "t", ["main"], 300 - number)], START_NS + LENGTH_NS)
    found = answer(store, "host").diff
    level = {path(found.a, n)[0] for n in range(1, len(found.tree)) if found.tree.depth[n] == 1}
    assert len(level) == MOST_GROUPS and "[4 others]" in level
    assert (found.a.sum, found.b.sum) == (sum(100 + n for n in range(hosts)), sum(300 - n for n in range(hosts)))


def test_the_groups_of_a_side_share_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(hosts=4)  # 80 rows of each host on each side
    budget = MergeBudget(rows=320)
    monkeypatch.setattr(sides, "Groups", lambda count: Groups(count, Meter(budget)))
    assert answer(store, "host").a.hosts == 4
    budget = MergeBudget(rows=319)
    with pytest.raises(LimitExceeded, match="more than 319 rows"):
        answer(store, "host")


def test_a_host_of_one_side_and_a_side_of_nothing() -> None:
    store = FakeStore()
    store.add([("shop", "a", "t", ["main"], 70)], START_NS)
    store.add([("shop", "b", "t", ["main"], 30)], START_NS + LENGTH_NS)
    found = answer(store, "host").diff
    values = {path(found.a, n): (int(found.a.own[n]), int(found.b.own[n])) for n in range(len(found.tree))}
    assert values[("a", "main")] == (70, 0) and values[("b", "main")] == (0, 30)
    assert answer(store, "host", 'cpu{host="a"}').notes[0] == "side B is empty"


def test_a_label_that_nobody_has_is_told() -> None:
    with pytest.raises(QueryError, match="no series here has a label 'hots'") as caught:
        answer(store_of(hosts=1), "hots")
    assert caught.value.hint == "did you mean host?"
