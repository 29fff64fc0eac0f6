# SPDX-License-Identifier: Apache-2.0
"""Odd hosts: distances by hand, and on the simulated fleet the one host that was changed, and no other."""

from pathlib import Path

import pytest

from server.query.complaint import QueryError
from server.query.odd_hosts import OddHosts, odd_hosts
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.timerange import SECOND_NS, TimeRange
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, FakeNamer, FakeStore, Row
from tests.support.fleet import START_UNIX_NS, Fleet, FleetShape, FleetStore, Noise, Release
from tests.support.fleet_program import FleetNamer, planted


def ranked(rows: list[Row], selector: str = "cpu{}") -> OddHosts:
    store = FakeStore()
    store.add(rows)
    return odd_hosts(ProfileQuery(store, FakeNamer(), lambda: NOW_NS), parse_selector(selector), TimeRange(START_NS, NOW_NS))


def host(name: str, f: int, g: int) -> list[Row]:
    return [("shop", name, "t", ["main", "f"], f), ("shop", name, "t", ["main", "g"], g)]


def test_distance_is_the_part_of_its_time_that_a_host_spends_elsewhere() -> None:
    answer = ranked([*host("a", 6000, 4000), *host("b", 600, 400), *host("c", 6000, 4000), *host("d", 2000, 8000)])
    first = answer.hosts[0]
    assert (first.host, first.is_odd, first.value) == ("d", True, 10_000 * PERIOD_NS)
    assert first.distance == pytest.approx(0.4)
    assert [(one.name, one.share, one.median) for one in first.functions] == [("f", 0.2, 0.6), ("g", 0.8, 0.4)]
    assert [(one.distance, one.is_odd, one.functions) for one in answer.hosts[1:]] == [(0.0, False, [])] * 3
    # Of 1,000 samples, 2 x sqrt(2 x 0.6 x 0.4 / pi / 1000) / 2.
    assert next(one.expected for one in answer.hosts if one.host == "b") == pytest.approx(0.01236, abs=1e-4)


def test_few_samples_are_no_oddness() -> None:
    answer = ranked([*host("a", 6000, 4000), *host("b", 6100, 3900), *host("c", 5900, 4100), *host("d", 3, 5)])
    assert not any(one.is_odd for one in answer.hosts)


def test_of_two_hosts_nobody_is_odd() -> None:
    answer = ranked([*host("a", 60, 40), *host("b", 1, 99)])
    assert not answer.is_comparable and not any(one.is_odd for one in answer.hosts)


def test_nothing_is_no_hosts() -> None:
    assert ranked(host("a", 1, 1), 'cpu{host="none"}').hosts == []


def test_several_services_are_refused() -> None:
    with pytest.raises(QueryError, match="within one service"):
        ranked([*host("a", 1, 1), ("mail", "a", "t", ["main"], 2)])


def test_the_host_that_was_changed_is_the_odd_one(tmp_path: Path) -> None:
    change = Release("checkout", "", START_UNIX_NS, hosts=("host-005",), shares={planted("checkout"): 0.15})
    fleet = Fleet(FleetShape(services=("checkout",), hosts=12, stacks=300, noise=Noise(hosts=0.05)), [change])
    simulated = FleetStore(tmp_path)
    fleet.run(simulated.push, START_UNIX_NS, START_UNIX_NS + 600 * SECOND_NS)
    query = ProfileQuery(simulated.store, FleetNamer(), lambda: simulated.now_unix_ns)
    answer = odd_hosts(query, parse_selector("cpu{}"), TimeRange(START_UNIX_NS, simulated.now_unix_ns))
    assert [one.host for one in answer.hosts if one.is_odd] == ["host-005"] == [answer.hosts[0].host]
    assert answer.hosts[0].functions[0].name == planted("checkout")
