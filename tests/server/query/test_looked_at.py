# SPDX-License-Identifier: Apache-2.0
"""The binaries of an answer are named first, by what they weigh; an answer tells how many of its binaries are being named."""

from server.query.operators import Operators
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.query.fakes import NOW_NS, START_NS, FakeNamer, FakeStore, Row

SPAN = TimeRange(START_NS, NOW_NS)
ROWS: list[Row] = [
    ("shop", "a", "t", ["main", "?0", "leaf"], 7),
    ("shop", "a", "t", ["main", "?0", "?1"], 23),
    ("mail", "a", "t", ["main", "?2"], 2),
    ("cron", "a", "t", ["main"], 11),
]


def made(being_made: set[int]) -> tuple[FakeNamer, ProfileQuery]:
    store, namer = FakeStore(), FakeNamer()
    store.add(ROWS)
    namer.being_made = being_made
    return namer, ProfileQuery(store, namer, lambda: NOW_NS)


def asked(text: str, operators: Operators = Operators(), group: str = "") -> Question:  # noqa: B008 -- a value
    return Question(parse_selector(text), SPAN, column="samples", operators=operators, group=group)


def test_what_an_answer_shows_is_told_with_its_weight() -> None:
    namer, query = made({1})
    assert query.profile(asked("cpu{}")).quality.naming == 1
    assert namer.looked_at == {1: 25.0}
    assert query.profile(asked('cpu{service="mail"}')).quality.naming == 1
    assert namer.looked_at == {1: 2.0}


def test_a_binary_that_only_calls_is_looked_at_too() -> None:
    namer, query = made({1})
    store = FakeStore()
    store.add([("shop", "a", "t", ["?0", "leaf"], 7)])
    assert ProfileQuery(store, namer, lambda: NOW_NS).profile(asked("cpu{}")).quality.naming == 1
    assert namer.looked_at == {1: 0.0}
    assert query.profile(asked('cpu{service="cron"}')).quality.naming == 0


def test_levels_of_an_answer_count_a_binary_once() -> None:
    _, query = made({1})
    assert query.profile(asked("cpu{}", group="service")).quality.naming == 1


def test_nothing_is_told_while_no_table_is_made() -> None:
    namer, query = made(set())
    assert query.profile(asked("cpu{}")).quality.naming == 0
    assert namer.looked_at == {}
