# SPDX-License-Identifier: Apache-2.0
"""Fleet search: the right services, a stack counted once, shares and trends; on the simulated fleet the truth comes out."""

from pathlib import Path

import pytest

from server.profile.stack_index import Stacks, StackSegment
from server.query import stack_indexes
from server.query.complaint import QueryError
from server.query.operators import frame_test
from server.query.profile_query import ProfileQuery
from server.query.regex import SearchMode, search
from server.query.search_query import Found, index_new_stacks, search_fleet, trend_slots
from server.query.selector import parse_selector
from server.query.timerange import SECOND_NS, TimeRange
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, FakeNamer, FakeStore, Row
from tests.support.fleet import START_UNIX_NS, Fleet, FleetShape, FleetStore, Noise, Release
from tests.support.fleet_program import FleetNamer, planted

ROWS: list[Row] = [
    ("shop", "a", "t", ["main", "json::parse", "read", "json::parse"], 7),
    ("shop", "b", "t", ["main", "json::parse_number"], 23),
    ("shop", "b", "t", ["main", "idle"], 70),
    ("mail", "a", "t", ["main", "json::parse"], 2),
    ("db", "c", "t", ["main", "scan"], 98),
]


def found(text: str, selector: str = "cpu{}", rows: list[Row] = ROWS) -> Found:
    store = FakeStore()
    store.add(rows)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    return search_fleet(query, parse_selector(selector), TimeRange(START_NS, NOW_NS), frame_test(text))


def test_services_with_a_match_and_what_they_spend_there() -> None:
    answer = found("json::")
    shop, mail = answer.services
    assert (shop.service, shop.total, shop.own, shop.service_total, shop.hosts) == (
        "shop", 30 * PERIOD_NS, 30 * PERIOD_NS, 100 * PERIOD_NS, 2,
    )  # fmt: skip
    assert (mail.service, mail.total, mail.share, mail.hosts) == ("mail", 2 * PERIOD_NS, 1.0, 1)
    assert [(one.name, one.total // PERIOD_NS, one.own // PERIOD_NS) for one in shop.functions] == [
        ("json::parse_number", 23, 23),
        ("json::parse", 7, 7),
    ]
    assert [(one.name, one.total // PERIOD_NS, one.services) for one in answer.functions] == [
        ("json::parse_number", 23, 1),
        ("json::parse", 9, 2),
    ]
    assert answer.fleet_total == 200 * PERIOD_NS


def test_exactly_this_name_and_only_where_it_is_asked_for() -> None:
    assert [(one.service, one.total // PERIOD_NS) for one in found("=json::parse").services] == [("shop", 7), ("mail", 2)]
    assert [one.service for one in found("=json::parse", 'cpu{host="a",service!="shop"}').services] == ["mail"]
    assert [(one.service, one.own, one.total // PERIOD_NS) for one in found("=read").services] == [("shop", 0, 7)]


def test_no_match_is_an_empty_answer() -> None:
    assert found("absent").services == [] and found("absent").fleet_total == 200 * PERIOD_NS
    assert found("main", 'cpu{service="none"}').services == []


def test_conditions_on_rows_are_refused() -> None:
    with pytest.raises(QueryError, match="conditions on series only"):
        found("main", 'cpu{thread="t"}')


def test_trend_is_the_share_by_slot() -> None:
    store = FakeStore()
    store.add([("shop", "a", "t", ["main", "f"], 7), ("shop", "a", "t", ["main"], 21)])
    store.add([("shop", "a", "t", ["main", "f"], 5)], START_NS + 120 * SECOND_NS)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    answer = search_fleet(query, parse_selector("cpu{}"), TimeRange(START_NS, START_NS + 180 * SECOND_NS), frame_test("=f"))
    assert answer.slots.step_s == 60
    assert [share for share in answer.services[0].trend if share is not None] == [0.25, 1.0]


def test_what_upkeep_has_indexed_is_not_indexed_by_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    store.add(ROWS)
    store.add([("old", "a", "t", ["main", "json::parse"], 5)], START_NS - 7200 * SECOND_NS)
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    index_new_stacks(query)
    made, segment = list[int](), stack_indexes.stack_segment

    def counted(stacks: Stacks, first_key: int) -> StackSegment:
        made.append(first_key)
        return segment(stacks, first_key)

    monkeypatch.setattr(stack_indexes, "stack_segment", counted)
    span = TimeRange(START_NS - 7300 * SECOND_NS, NOW_NS)
    found = {one.service: one.total for one in search_fleet(query, parse_selector("cpu{}"), span, frame_test("json::")).services}
    assert found == {"shop": 30 * PERIOD_NS, "mail": 2 * PERIOD_NS, "old": 5 * PERIOD_NS}
    assert made == [0]  # that of "old", which has had no data for more than an hour


@pytest.mark.parametrize(("hours", "step_s", "longest_s"), [(0.25, 60, 60), (1, 300, 60), (24, 3600, 3600), (7 * 24, 28_800, 3600)])
def test_slots_of_a_trend_hold_whole_blocks(hours: float, step_s: int, longest_s: int) -> None:
    start = START_NS + 7 * SECOND_NS
    slots = trend_slots(TimeRange(start, start + int(hours * 3600) * SECOND_NS))
    assert (slots.step_s, slots.longest_ns // SECOND_NS) == (step_s, longest_s)
    assert slots.first_s % step_s == 0 and 0 <= slots.slot(start) < slots.count <= 31


def test_a_new_function_of_one_service_is_found_with_its_true_share(tmp_path: Path) -> None:
    name, change_ns = planted("search"), START_UNIX_NS + 180 * SECOND_NS
    releases = [Release("search", "1", change_ns, hosts=("host-001",), shares={name: 0.25})]
    fleet = Fleet(FleetShape(hosts=2, stacks=200, noise=Noise(0.0, 0.0, day=0.0)), releases)
    simulated = FleetStore(tmp_path)
    fleet.run(simulated.push, START_UNIX_NS, START_UNIX_NS + 360 * SECOND_NS)
    simulated.compact()
    query = ProfileQuery(simulated.store, FleetNamer(), lambda: simulated.now_unix_ns)
    span = TimeRange(START_UNIX_NS, simulated.now_unix_ns)
    (service,) = search_fleet(query, parse_selector("cpu{}"), span, search("planted_0$", SearchMode.REGEX)).services
    assert (service.service, service.hosts) == ("search", 1)
    # One of two hosts has 0.25 / 1.25 of its samples there, for half of the time.
    assert service.share == pytest.approx(0.25 / 4.25, abs=0.01)
    shares = [share for share in service.trend if share is not None]
    assert shares[:3] == [0.0, 0.0, 0.0] and min(shares[3:6]) > 0.08
