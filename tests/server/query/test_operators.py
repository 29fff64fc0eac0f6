# SPDX-License-Identifier: Apache-2.0
"""Frame operators on answers: as people write them, in their order, with counts and totals that stay true."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from server.profile.names import CodeKind, FrameColumns, FrameNames
from server.profile.packages import Unit
from server.query.complaint import QueryError
from server.query.frame_names import Binaries
from server.query.operators import Operators, frame_test
from server.query.profile_query import Profile, ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.profile.trees import rows_of
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, FakeNamer, FakeStore, Row

ROWS: list[Row] = [
    ("shop", "a", "worker-N", ["main", "json::parse", "json::parse", "read_[k]"], 7),
    ("shop", "b", "worker-N", ["main", "json::parse_number"], 23),
    ("shop", "b", "io-N", ["main", "db::get", "json::parse"], 5),
    ("mail", "a", "main", ["main", "send"], 2),
]


def answer(operators: Operators, text: str = 'cpu{service="shop"}', group: str = "", column: str = "samples") -> Profile:
    store = FakeStore()
    store.add(ROWS)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    return query.profile(Question(parse_selector(text), TimeRange(START_NS, NOW_NS), column=column, group=group, operators=operators))


def rows(operators: Operators, **more: str) -> dict[tuple[str, ...], int]:
    return rows_of(answer(operators, **more).weighed)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("=json::parse", {"json::parse"}), ("PARSE", {"json::parse", "json::parse_number"}), ("~parse$", {"json::parse"}), ("=", set())],
)
def test_frames_are_meant_exactly_by_regex_or_by_a_part(text: str, meant: set[str]) -> None:
    assert {name for name in ("json::parse", "json::parse_number", "db::get") if frame_test(text)(name)} == meant


def test_focus_and_ignore_choose_whole_stacks() -> None:
    focused = answer(Operators(focus="=json::parse", ignore="db::"))
    assert rows_of(focused.weighed) == {("main", "json::parse", "json::parse", "read"): 7}
    assert (focused.samples, focused.whole, focused.quality.stacks.whole) == (7, 35, 1.0)


def test_samples_are_those_of_the_stacks_that_are_left() -> None:
    profile = answer(Operators(ignore="db::"), column="")
    assert (profile.weighed.sum, profile.samples) == (30 * PERIOD_NS, 30)


def test_sandwich_counts_a_stack_once() -> None:
    assert rows(Operators(callees="=json::parse")) == {("json::parse", "json::parse", "read"): 7, ("json::parse",): 5}
    assert rows(Operators(callers="=json::parse")) == {("json::parse", "main"): 7, ("json::parse", "db::get", "main"): 5}


def test_the_kernel_is_counted_for_who_went_there_and_recursion_is_one_frame() -> None:
    shown = rows(Operators(is_without_kernel=True, is_collapsed=True))
    assert shown == {("main", "json::parse"): 7, ("main", "json::parse_number"): 23, ("main", "db::get", "json::parse"): 5}
    assert rows(Operators(callees="read", is_without_kernel=True)) == {}


def test_packages_and_binaries_swallow_what_follows_in_them() -> None:
    packages = rows(Operators(unit=Unit.PACKAGE))
    assert packages == {("app", "json", "kernel"): 7, ("app", "json"): 23, ("app", "db", "json"): 5}
    assert rows(Operators(unit=Unit.BINARY, is_without_kernel=True)) == {("app",): 35}


def test_groups_stay_on_top_of_what_is_hung_up_elsewhere() -> None:
    callers = rows(Operators(callers="=json::parse"), group="thread")
    assert callers == {("worker-N", "json::parse", "main"): 7, ("io-N", "json::parse", "db::get", "main"): 5}
    assert rows(Operators(is_inverted=True), group="thread")["io-N", "json::parse", "db::get", "main"] == 5
    assert rows(Operators(focus="=worker-N"), group="thread") == {}


def test_groups_by_labels_of_series() -> None:
    by_host = rows(Operators(), group="host")
    assert by_host["a", "main", "json::parse", "json::parse", "read"] == 7 and by_host["b", "main", "json::parse_number"] == 23
    assert set(rows(Operators(callees="=main"), text="cpu{}", group="service")) == {
        ("shop", "main", "json::parse", "json::parse", "read"),
        ("shop", "main", "json::parse_number"),
        ("shop", "main", "db::get", "json::parse"),
        ("mail", "main", "send"),
    }
    with pytest.raises(QueryError, match="no series here has a label 'hots'") as caught:
        rows(Operators(), group="hots")
    assert caught.value.hint == "did you mean host?"


@pytest.mark.parametrize(
    ("operators", "complaint"),
    [(Operators(callers="a", callees="b"), "exclude one another"), (Operators(focus="~("), "focus: the regex")],
)
def test_what_no_graph_can_answer_is_told(operators: Operators, complaint: str) -> None:
    with pytest.raises(QueryError, match=complaint):
        answer(operators)


class GoNamer(FakeNamer):
    """All functions are Go's."""

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        named = super().names(frames, binaries, strings, service)
        named.functions.codes[:] = CodeKind.GO
        return named


def test_instances_of_a_generic_function_are_apart_until_they_are_merged() -> None:
    store = FakeStore()
    one, other = "foo[go.shape.int64]", "foo[go.shape.string]"
    store.add([("shop", "a", "t", ["main.main", one, "leaf"], 3), ("shop", "a", "t", ["main.main", other, one], 4)])
    query = ProfileQuery(store, GoNamer(), lambda: NOW_NS)
    asked = Question(parse_selector("cpu{}"), TimeRange(START_NS, NOW_NS), column="samples")
    assert rows_of(query.profile(asked).weighed) == {("main.main", one, "leaf"): 3, ("main.main", other, one): 4}
    merged = query.profile(replace(asked, operators=Operators(unit=Unit.GENERICS)))
    assert rows_of(merged.weighed) == {("main.main", "foo[...]", "leaf"): 3, ("main.main", "foo[...]", "foo[...]"): 4}
    folded = query.profile(replace(asked, operators=Operators(unit=Unit.GENERICS, is_collapsed=True)))
    assert rows_of(folded.weighed) == {("main.main", "foo[...]", "leaf"): 3, ("main.main", "foo[...]"): 4}
