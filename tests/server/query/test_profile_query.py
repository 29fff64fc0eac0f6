# SPDX-License-Identifier: Apache-2.0
"""From a question to a tree: the right rows, names, joins and the truth about what is missing."""

import pytest

from server.errors import BadRequest, LimitExceeded, Overloaded
from server.profile.nametable import PathFlag
from server.query import profile_query
from server.query.complaint import QueryError
from server.query.merge import MergeBudget, Meter
from server.query.operators import Operators
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from server.store.protocol import AccountSlot
from tests.server.profile.trees import rows_of
from tests.server.query.fakes import NOW_NS, PERIOD_NS, SECOND_NS, START_NS, START_S, WINDOW_NS, FakeNamer, FakeStore, Row, agent

RANGE = TimeRange(START_NS, NOW_NS)
ROWS: list[Row] = [
    ("shop", "a", "worker-N", ["main", "parse"], 7),
    ("shop", "b", "main", ["main", "parse", "__x64_sys_write_[k]"], 23),
    ("mail", "a", "main", ["main", "send"], 2),
]


def made(rows: list[Row] | None = None) -> tuple[FakeStore, ProfileQuery]:
    store = FakeStore()
    if rows:
        store.add(rows)
    return store, ProfileQuery(store, FakeNamer(), lambda: NOW_NS)


def question(text: str = "cpu{}", span: TimeRange = RANGE, **more: object) -> Question:
    return Question(parse_selector(text), span, **more)  # type: ignore[arg-type]


def test_one_service_is_its_own_tree() -> None:
    _, query = made(ROWS)
    profile = query.profile(question('cpu{service="shop"}', column="samples"))
    assert rows_of(profile.weighed) == {("main", "parse"): 7, ("main", "parse", "__x64_sys_write"): 23}
    assert (profile.samples, profile.covered_s, profile.nearest_data_s) == (30, 10.0, None)


def test_width_is_time_unless_asked_otherwise() -> None:
    _, query = made(ROWS)
    profile = query.profile(question('cpu{service="mail"}'))
    assert (profile.column.name, profile.weighed.sum) == ("ns", 2 * PERIOD_NS)


def test_services_are_joined_by_name() -> None:
    _, query = made(ROWS)
    profile = query.profile(question(column="samples"))
    assert rows_of(profile.weighed) == {("main", "parse"): 7, ("main", "parse", "__x64_sys_write"): 23, ("main", "send"): 2}
    assert profile.first_calls().sum() == len(profile.weighed.tree)


def test_hosts_side_by_side_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    _, query = made(ROWS)
    monkeypatch.setattr(profile_query, "Meter", lambda: Meter(MergeBudget(rows=2)))  # host a has two rows and b one
    with pytest.raises(LimitExceeded, match="more than 2 rows"):
        query.profile(question(group="host"))
    monkeypatch.setattr(profile_query, "Meter", lambda: Meter(MergeBudget(rows=3)))
    assert query.profile(question(column="samples", group="host")).weighed.sum == 32


def test_threads_are_the_outermost_level_when_asked() -> None:
    _, query = made([*ROWS, ("shop", "a", "", ["idle"], 3)])
    profile = query.profile(question('cpu{service="shop"}', column="samples", group="thread"))
    assert rows_of(profile.weighed) == {
        ("worker-N", "main", "parse"): 7,
        ("main", "main", "parse", "__x64_sys_write"): 23,
        ("[no thread name]", "idle"): 3,
    }


def test_inverted_starts_with_the_leaf() -> None:
    _, query = made(ROWS)
    profile = query.profile(question('cpu{service="mail"}', column="samples", operators=Operators(is_inverted=True)))
    assert rows_of(profile.weighed) == {("send", "main"): 2}


def test_windows_outside_the_range_do_not_count() -> None:
    store, query = made(ROWS)
    store.add([("mail", "a", "main", ["late"], 11)], START_NS + 6 * WINDOW_NS)
    assert query.profile(question(column="samples")).weighed.sum == 32


def test_a_later_window_extends_the_kept_tree() -> None:
    store, query = made(ROWS)
    query.profile(question())
    store.add([("shop", "a", "main", ["main", "aa"], 11)], START_NS + WINDOW_NS)
    profile = query.profile(question('cpu{service="shop"}', column="samples"))
    assert rows_of(profile.weighed)["main", "aa"] == 11
    assert profile.weighed.sum == 41


def test_new_names_rename_the_past() -> None:
    store = FakeStore()
    store.add(ROWS)
    namer = FakeNamer()
    query = ProfileQuery(store, namer, lambda: NOW_NS)
    query.profile(question())
    namer.prefix, namer.generation = "better::", 2
    assert rows_of(query.profile(question('cpu{service="mail"}', column="samples")).weighed) == {("better::main", "better::send"): 2}


def test_quality_says_what_was_lost() -> None:
    store, query = made(
        [
            ("shop", "a", "t", ["[truncated]", "main"], 7),
            ("shop", "a", "t", ["[stack lost: ENOMEM]"], 23),
            ("shop", "a", "t", ["main", "?0"], 2),
            ("shop", "a", "t", ["[exited]"], 11),
            ("shop", "a", "t", ["main"], 57),
        ]
    )
    store.account_slots = [
        AccountSlot(b"a", "a", START_NS, 200, 100, 60, 17, {1: 13, 3: 10, 100: 23, 105: 7}),
        AccountSlot(b"b", "b", START_NS, 1000, 1000, 0, 0, {}),
    ]
    store.agent_infos = [agent("a", NOW_NS - 90 * SECOND_NS), agent("b")]
    quality = query.profile(question('cpu{host="a"}', column="samples")).quality
    losses = quality.losses
    assert (losses.expected, losses.stored, losses.idle, losses.filtered) == (200, 100, 60, 17)
    assert losses.lost == {"MAP_FULL": 13, "TIMER_MISSED": 10}
    assert losses.lost_share == 0.115
    assert quality.is_of_hosts
    assert quality.stack_losses.by == {"STACK_ENOMEM": 23, "TRUNCATED": 7, "EXITED": 11}
    assert quality.stack_losses.share == 0.34
    assert losses.expected == losses.stored + losses.idle + losses.filtered + sum(losses.lost.values())
    assert (quality.stacks.truncated, quality.stacks.unnamed, quality.stacks.unknown) == (0.07, 0.02, 0.11)
    assert quality.stacks.whole == pytest.approx(0.59)
    assert (quality.hosts, quality.hosts_silent) == (0, ("a",)), "a host is not counted as heard and as silent"


def test_a_host_that_went_silent_before_the_range_is_told() -> None:
    store, query = made(ROWS)
    store.agent_infos = [agent("a", START_NS + WINDOW_NS), agent("b")]
    store.add([("shop", "b", "main", ["main"], 3)], START_NS + 5 * WINDOW_NS)
    later = TimeRange(START_NS + 5 * WINDOW_NS, START_NS + 30 * WINDOW_NS)
    query.now_unix_ns = lambda: START_NS + 30 * WINDOW_NS
    store.agent_infos = [agent("a", START_NS + WINDOW_NS), agent("b", START_NS + 30 * WINDOW_NS)]
    quality = query.profile(question("cpu", later)).quality
    assert (quality.hosts, quality.hosts_silent) == (1, ("a",))


def test_nothing_in_range_says_where_the_nearest_is() -> None:
    _, query = made(ROWS)
    before = TimeRange(START_NS - 100 * WINDOW_NS, START_NS)
    profile = query.profile(question("cpu", before))
    assert (profile.weighed.sum, profile.samples, profile.covered_s, profile.nearest_data_s) == (0, 0, 0.0, float(START_S))
    assert query.profile(question('cpu{service="nobody"}')).nearest_data_s is None


def test_an_empty_store_answers() -> None:
    _, query = made()
    profile = query.profile(question())
    assert (profile.weighed.sum, profile.kind, profile.nearest_data_s, profile.quality.stacks.whole) == (0, "cpu", None, 1.0)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("cqu{}", "did you mean cpu?"), ('cpu{servce="shop"}', "did you mean service?"), ('cpu{zoen="z-a"}', "did you mean zone?")],
)
def test_a_typo_is_told(text: str, hint: str) -> None:
    _, query = made(ROWS)
    with pytest.raises(BadRequest) as caught:
        query.profile(question(text))
    assert getattr(caught.value, "hint", "") == hint


def test_an_unknown_column_is_told() -> None:
    _, query = made(ROWS)
    with pytest.raises(BadRequest, match="has no column 'nanos' that adds up"):
        query.profile(question(column="nanos"))


def test_too_many_questions_at_once_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_query, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(profile_query, "LONGEST_WAIT_S", 0.0)
    _, query = made(ROWS)
    with pytest.raises(Overloaded, match="try again"):
        query.profile(question())


def test_a_failed_question_frees_its_place() -> None:
    _, query = made(ROWS)
    for _ in range(2 * profile_query.MOST_AT_ONCE):
        with pytest.raises(BadRequest):
            query.profile(question("cqu"))
    assert query.profile(question(column="samples")).samples == 32


def test_labels_of_the_config_select_too() -> None:
    _, query = made(ROWS)
    assert query.profile(question('cpu{zone="z-b"}', column="samples")).weighed.sum == 23


def test_flags_survive_a_join() -> None:
    _, query = made([("x", "a", "t", ["[truncated]", "f"], 7), ("y", "a", "t", ["f"], 23)])
    profile = query.profile(question(column="samples"))
    flagged = profile.weighed.own[(profile.weighed.tree.flags & PathFlag.TRUNCATED) != 0]
    assert int(flagged.sum()) == 7


@pytest.mark.parametrize("rows", [ROWS, []], ids=["data", "nothing stored yet"])
def test_label_nobody_has_is_told_with_the_nearest(rows: list[Row]) -> None:
    _, query = made(rows)
    with pytest.raises(QueryError, match="no series has a label 'servce'") as caught:
        query.profile(question('cpu{servce="x"}'))
    assert (caught.value.hint, caught.value.position) == ("did you mean service?", 4)


def test_time_under_a_hidden_kernel_is_told() -> None:
    _, query = made([("shop", "a", "t", ["main", "[kernel hidden]"], 3), ("shop", "a", "t", ["main"], 97)])
    stacks = query.profile(question(column="samples")).quality.stacks
    assert (stacks.kernel_hidden, stacks.unnamed, stacks.whole) == (0.03, 0.03, 1.0)
