# SPDX-License-Identifier: Apache-2.0
"""Reports that make themselves: what a version changed is named, and nothing else; they follow a roll-out, end, and outlive the data."""

from dataclasses import replace
from typing import Any

from server.fleet.deploy import Deploy, Rates
from server.fleet.deploys import deploy_by_id, deploys
from server.fleet.events import Cause, Event
from server.fleet.kept import keep_rates, kept_report
from server.fleet.latest import latest_reported
from server.fleet.reporter import Reporter
from server.query.timerange import SECOND_NS, TimeRange
from server.store.documents import Collection, Document
from tests.server.fleet.rollouts import NEW, OLD, Rollout
from tests.server.query.fakes import START_NS, WINDOW_NS, FakeStore

COSTS = {"1": OLD, "2": NEW, "same": OLD}
BOTH = {"a": "1", "b": "1"}


def newest(rollout: Rollout) -> Deploy:
    return deploys(rollout.store, TimeRange(START_NS - SECOND_NS, rollout.now_ns))[0]


def report_of(rollout: Rollout) -> dict[str, Any]:
    Reporter(rollout.query).step()
    report = kept_report(rollout.store.documents, newest(rollout).deploy_id)
    assert report is not None
    return dict(report)


def test_a_canary_names_what_changed_and_nothing_else() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(40, {"a": "1", "b": "2"}, COSTS)
    report = report_of(rollout)
    rows = {row["name"]: row for row in report["rows"]}
    assert set(rows) == {"zip", "legacy"}
    assert (rows["legacy"]["state"], rows["zip"]["state"]) == ("vanished", "both")
    assert rows["zip"]["low"] > 0 > rows["legacy"]["high"]
    assert 1.1 < rows["zip"]["b_per"] / rows["zip"]["a_per"] < 1.3
    assert rows["legacy"]["b_total"] == 0 and not any(rows["legacy"]["b_bars"]) and min(rows["legacy"]["a_bars"]) > 0.05
    verdict = newest(rollout).verdict
    assert verdict is not None and not verdict.is_final
    # 940 samples a window became 860: 8.5 % less.
    assert verdict.words.startswith("CPU per host −") and verdict.words.endswith(" %: 2 functions")
    assert -0.11 < verdict.change < -0.06
    assert report["cpu"]["low"] < verdict.change < report["cpu"]["high"] < 0
    assert report["functions"] == {"beyond_noise": report["functions"]["beyond_noise"], "explained": report["functions"]["explained"],
                                   "reported": 2, "compared": 5}  # fmt: skip
    assert len(report["series"]["before"]) == len(report["series"]["after"])


def test_the_last_deploy_of_each_service_is_told_while_its_version_runs() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(40, {"a": "1", "b": "2"}, COSTS)
    documents = rollout.store.documents
    assert latest_reported(documents, {"shop": "2"}) == {}
    report_of(rollout)
    (last,) = latest_reported(documents, {"shop": "2", "other": "2"}).values()
    assert (last.deploy_id, last.verdict) == (newest(rollout).deploy_id, newest(rollout).verdict)
    assert latest_reported(documents, {"shop": "1"}) == latest_reported(documents, {}) == {}


def test_the_same_code_again_is_no_change() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(40, {"a": "same", "b": "same"}, COSTS)
    report = report_of(rollout)
    assert report["rows"] == []
    verdict = newest(rollout).verdict
    assert verdict is not None and verdict.is_noise and verdict.words == "no change beyond noise"


def test_with_rates_cpu_is_told_per_request() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(40, {"a": "1", "b": "2"}, COSTS)
    keep_rates(rollout.store.documents, ("shop", "2"), Rates(100, 200), rollout.now_ns)
    report = report_of(rollout)
    assert report["cpu"]["measure"] == "CPU per request"
    # 0.94 cores for 100 requests a second; 0.86 for 200.
    assert 0.0088 < report["cpu"]["a"] < 0.01 and 0.0040 < report["cpu"]["b"] < 0.0046
    verdict = newest(rollout).verdict
    assert verdict is not None and verdict.words == f"CPU per request −{-verdict.change * 100:.0f} %: 2 functions"


def test_a_report_waits_for_data_follows_and_ends() -> None:
    rollout = Rollout()
    reporter = Reporter(rollout.query)
    rollout.run(30, BOTH, COSTS)
    rollout.run(11, {"a": "1", "b": "2"}, COSTS)
    reporter.step()
    assert newest(rollout).verdict is None
    made: list[int] = []
    for _ in range(12):
        rollout.run(2, {"a": "2", "b": "2"}, COSTS)
        reporter.step()
        verdict = newest(rollout).verdict
        made.append(verdict.made_unix_ns if verdict else 0)
    assert len(set(made)) > 5  # anew as it goes on
    rollout.now_ns += 3600 * SECOND_NS
    reporter.step()
    verdict = newest(rollout).verdict
    assert verdict is not None and verdict.is_final
    rollout.now_ns += 3600 * SECOND_NS
    reporter.step()
    assert newest(rollout).verdict == verdict


def test_a_rollback_has_a_report_of_its_own() -> None:
    rollout = Rollout()
    reporter = Reporter(rollout.query)
    rollout.run(30, BOTH, COSTS)
    rollout.run(60, {"a": "2", "b": "2"}, COSTS)
    reporter.step()
    rollout.run(40, BOTH, COSTS)
    rollout.now_ns += 60 * SECOND_NS
    report = report_of(rollout)
    found = deploys(rollout.store, TimeRange(START_NS, rollout.now_ns))
    assert [(one.version, one.replaced, one.is_return) for one in found] == [("1", "2", True), ("2", "1", False)]
    assert found[0].deploy_id != found[1].deploy_id
    assert {row["name"]: row["state"] for row in report["rows"]} == {"zip": "both", "legacy": "new"}
    assert found[1].comparison.before.range.until_unix_ns == START_NS + 30 * 10 * SECOND_NS


def test_deploys_and_reports_outlive_their_series() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(40, {"a": "1", "b": "2"}, COSTS)
    report = report_of(rollout)
    before = newest(rollout)
    bare = FakeStore()
    bare.__dict__["documents"] = rollout.store.documents
    assert deploys(bare, TimeRange(START_NS, rollout.now_ns)) == [before]
    assert deploy_by_id(bare, before.deploy_id) == before == replace(before, service="shop")
    assert kept_report(bare.documents, before.deploy_id) == report
    assert deploy_by_id(bare, "nothing") is None


def test_a_named_function_is_an_event_once() -> None:
    rollout = Rollout()
    told: list[Event] = []

    def deliveries(event: Event) -> list[tuple[Collection, Document]]:
        told.append(event)
        return [(Collection("told", 10), Document(event.event_id, 0, {}))]

    reporter = Reporter(rollout.query, deliveries)
    rollout.run(30, BOTH, COSTS)
    for _ in range(3):
        rollout.run(20, {"a": "1", "b": "2"}, COSTS)
        reporter.step()
    assert {(event.function, event.cause, event.version) for event in told} == {("zip", Cause.DEPLOY, "2"), ("legacy", Cause.DEPLOY, "2")}
    assert len(told) == 2 and {event.deploy_id for event in told} == {newest(rollout).deploy_id}
    assert len(rollout.store.documents.newest(Collection("told", 10), 0)) == 2


BIASED = {"1": OLD, "b1": {**OLD, "zip": 300}, "2": OLD, "better": {**OLD, "zip": 300, "legacy": 0}}


def canary_on(new: str) -> Rollout:
    """Host b compresses half as much again whatever it runs; then it gets another version."""
    rollout = Rollout()
    for version, windows in (("1", 40), (new, 40)):
        for _ in range(windows):
            rollout.run(1, {"a": "1"}, BIASED)
            rollout.now_ns -= WINDOW_NS
            rollout.run(1, {"b": version}, {version: BIASED["better" if version == "better" else "b1"]})
    return rollout


def test_hosts_that_differ_anyway_are_no_change_of_the_version() -> None:
    report = report_of(canary_on("2"))
    assert report["rows"] == []
    assert report["notes"][-1] == "1 function differs between these hosts, but not on the same hosts before and after: not named"


def test_what_changed_on_the_same_hosts_too_is_named() -> None:
    assert {row["name"] for row in report_of(canary_on("better"))["rows"]} == {"legacy"}


def test_places_without_names_are_not_named() -> None:
    rollout, costs = Rollout(), {"1": {**OLD, "?old": 90}, "2": {**OLD, "?new": 90}}
    rollout.run(30, BOTH, costs)
    rollout.run(40, {"a": "1", "b": "2"}, costs)
    report = report_of(rollout)
    assert report["rows"] == [] and report["functions"]["beyond_noise"] == 0
