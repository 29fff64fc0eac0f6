# SPDX-License-Identifier: Apache-2.0
"""The simulated fleet, through decode, ingest, blocks and query: what was planted is found, and windows differ as real ones do."""

from pathlib import Path

import numpy as np
import pytest

from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.table_query import SortBy, table
from server.query.timerange import TimeRange
from tests.support.fleet import DAY_NS, RATE_HZ, SECOND_NS, START_UNIX_NS, Fleet, FleetShape, FleetStore, Noise, Release, Service
from tests.support.fleet_program import FleetNamer, planted

MINUTE_NS = 60 * SECOND_NS
STEADY = Noise(hosts=0.0, requests=0.0, day=0.0)


def shares_of(query: ProfileQuery, selector: str, span: TimeRange) -> dict[str, float]:
    profile = query.profile(Question(parse_selector(selector), span))
    found, names = table(profile, SortBy.TOTAL, 1000), profile.weighed.tree.table.names
    return {names[n]: value / profile.weighed.sum for n, value in zip(found.name.tolist(), found.total.tolist(), strict=True)}


def test_planted_shares_come_out_of_the_store(tmp_path: Path) -> None:
    change_ns = START_UNIX_NS + 5 * MINUTE_NS
    releases = [
        Release("checkout", "1.0"),
        Release("checkout", "1.1", change_ns, hosts=("host-001",), shares={planted("checkout"): 0.2}),
    ]
    fleet = Fleet(FleetShape(services=("checkout", "search"), hosts=2, stacks=300, noise=STEADY), releases)
    simulated = FleetStore(tmp_path)
    fleet.run(simulated.push, START_UNIX_NS, START_UNIX_NS + 10 * MINUTE_NS)
    simulated.compact()
    query = ProfileQuery(simulated.store, FleetNamer(), lambda: simulated.now_unix_ns)
    span = TimeRange(START_UNIX_NS, simulated.now_unix_ns)
    whole = query.profile(Question(parse_selector("cpu{}"), span, column="samples"))
    assert whole.weighed.sum == whole.samples == fleet.samples
    losses = whole.quality.losses
    assert losses.expected == losses.stored + losses.idle and losses.stored == fleet.samples and not losses.lost
    truth = fleet.shares("checkout", 1, change_ns)
    assert truth[planted("checkout")] == pytest.approx(0.2 / 1.2)
    found = shares_of(query, 'cpu{service="checkout",version="1.1"}', span)
    # 5 minutes of one host: 35,000 samples; six standard deviations of a share of one half are 1.6 points.
    assert found[planted("checkout")] == pytest.approx(truth[planted("checkout")], abs=0.016)
    for name in [name for name, share in truth.items() if share > 0.1 and name in found]:
        assert found[name] == pytest.approx(truth[name], abs=0.016), name
    assert planted("checkout") not in shares_of(query, 'cpu{service="checkout",version="1.0"}', span)


def test_a_fleet_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    draws = [Service(FleetShape(seed=seed, stacks=200), 0, ()).draw(0, START_UNIX_NS).tolist() for seed in (7, 7, 8)]
    assert draws[0] == draws[1] != draws[2]


def test_windows_are_over_dispersed_autocorrelated_and_follow_the_day() -> None:
    service = Service(FleetShape(stacks=200, noise=Noise(day=0.0, requests=0.3)), 0, ())
    largest = service.program.groups == np.bincount(service.program.groups, service.program.base).argmax()
    series = np.array([service.draw(0, START_UNIX_NS + i * 10 * SECOND_NS)[largest].sum() for i in range(2000)], float)
    assert series.var() > 4 * series.mean()
    centred = series - series.mean()
    assert (centred[1:] * centred[:-1]).mean() > 0.5 * series.var()
    daily = Service(FleetShape(stacks=200, noise=Noise(requests=0.0, day=0.4)), 0, ())
    hours = [daily.draw(0, hour * DAY_NS // 24).sum() for hour in range(24)]
    assert min(hours) < 0.75 * RATE_HZ * 10 and max(hours) > 1.25 * RATE_HZ * 10
