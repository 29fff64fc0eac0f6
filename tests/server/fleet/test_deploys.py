# SPDX-License-Identifier: Apache-2.0
"""Deploys from the versions of series: what replaced what, on how many hosts, and what is compared with what."""

from hypothesis import given, settings
from hypothesis import strategies as st

from server.fleet.deploy import Deploy, Side
from server.fleet.deploys import deploys
from server.query.timerange import TimeRange
from server.store.protocol import DeployNote
from tests.server.query.fakes import SECOND_NS, START_NS, WINDOW_NS, FakeStore
from tests.support.steps import steps

MINUTE_NS = 60 * SECOND_NS
DAY = TimeRange(START_NS - 86_400 * SECOND_NS, START_NS + 86_400 * SECOND_NS)


def store_of(*runs: tuple[str, str, int, int], service: str = "shop") -> FakeStore:
    """Runs are (version, host, first minute, last minute): a window at the start of each."""
    store = FakeStore()
    for version, host, first, last in runs:
        for minute in (first, last):
            store.add([(service, host, "t", ["main"], 7)], START_NS + minute * MINUTE_NS, version)
    return store


def minutes(side: Side) -> tuple[str, float, float]:
    """A side with its range in minutes since START_NS."""
    start, end = ((at - START_NS) / MINUTE_NS for at in (side.range.from_unix_ns, side.range.until_unix_ns))
    return side.version, start, end


def only(found: list[Deploy]) -> Deploy:
    (deploy,) = found
    return deploy


def test_the_first_version_is_no_deploy() -> None:
    assert deploys(store_of(("1", "a", 0, 30)), DAY) == []
    assert deploys(store_of(("1", "a", 0, 30), ("2", "b", 0, 30)), DAY) == []


def test_a_version_without_a_name_neither_comes_nor_is_replaced() -> None:
    assert deploys(store_of(("", "a", 0, 10), ("1", "a", 11, 20)), DAY) == []


def test_a_restart_is_compared_before_and_after_for_equal_lengths() -> None:
    deploy = only(deploys(store_of(("1", "a", 0, 29), ("2", "a", 30, 36)), DAY))
    assert (deploy.service, deploy.version, deploy.replaced, deploy.annotation) == ("shop", "2", "1", None)
    assert deploy.first_seen_unix_ns == START_NS + 30 * MINUTE_NS
    assert not deploy.comparison.is_canary
    # The new version ran for 6 minutes and a window, the old one ended a window after its last minute.
    window = WINDOW_NS / MINUTE_NS
    assert minutes(deploy.comparison.before) == ("1", 29 + window - 6 - window, 29 + window)
    assert minutes(deploy.comparison.after) == ("2", 30, 36 + window)


def test_long_runs_are_compared_for_an_hour() -> None:
    comparison = only(deploys(store_of(("1", "a", 0, 300), ("2", "a", 301, 600)), DAY)).comparison
    assert [side.range.length_ns for side in (comparison.before, comparison.after)] == [3600 * SECOND_NS] * 2


def test_versions_side_by_side_are_a_canary() -> None:
    deploy = only(deploys(store_of(("1", "a", 0, 90), ("1", "b", 0, 30), ("1", "c", 0, 10), ("2", "b", 31, 90)), DAY))
    assert deploy.comparison.is_canary
    window = WINDOW_NS / MINUTE_NS
    assert minutes(deploy.comparison.before) == ("1", 31, 90 + window)
    assert minutes(deploy.comparison.after) == ("2", 31, 90 + window)
    # b has it, a still waits; c was gone long before.
    assert (deploy.hosts_done, deploy.hosts_total) == (1, 2)


def test_of_a_long_canary_the_last_hour_counts() -> None:
    comparison = only(deploys(store_of(("1", "a", 0, 400), ("2", "b", 31, 400)), DAY)).comparison
    assert minutes(comparison.after) == ("2", 340 + WINDOW_NS / MINUTE_NS, 400 + WINDOW_NS / MINUTE_NS)


def test_one_minute_together_is_no_canary() -> None:
    comparison = only(deploys(store_of(("1", "a", 0, 31), ("2", "b", 30, 90)), DAY)).comparison
    assert not comparison.is_canary
    assert minutes(comparison.before)[2] == 30


def test_what_ran_last_is_what_was_replaced() -> None:
    found = deploys(store_of(("1", "a", 0, 60), ("2", "b", 20, 30), ("3", "b", 40, 60)), DAY)
    # When 3 came, 2 had ended and 1 still ran.
    assert [(deploy.version, deploy.replaced) for deploy in found] == [("3", "1"), ("2", "1")]


@settings(deadline=None)  # each example opens a database
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=9))
def test_the_replaced_one_is_the_best_of_all_before(spans: list[tuple[int, int]]) -> None:
    runs = [(str(at), "a", first, first + length) for at, (first, length) in enumerate(spans)]
    found = {deploy.version: deploy.replaced for deploy in deploys(store_of(*runs), DAY)}
    ordered = sorted(runs, key=lambda run: (run[2], run[0]))
    for at, (version, _, first, _) in enumerate(ordered):
        if first == ordered[0][2]:
            assert version not in found
            continue
        # By the rule in words: who ran last until then; a window ends 10 s after its minute.
        best = max((min(before[3] + 1 / 6, first), before[2], before[0]) for before in ordered[:at])
        assert found[version] == best[2]


def test_thousands_of_versions_take_one_pass() -> None:
    def cost(versions: int) -> int:
        store = FakeStore()
        for at in range(versions):
            store.add([("shop", "a", "t", ["main"], 7)], START_NS + at * WINDOW_NS, f"v{at}")
        found: list[Deploy] = []
        taken = steps(lambda: found.extend(deploys(store, DAY)))
        assert len(found) == versions - 1
        return taken

    assert cost(2000) < 11 * cost(200), "each beside each would be 100 times as much"


def test_range_service_and_note_choose() -> None:
    store = store_of(("1", "a", 0, 9), ("2", "a", 10, 19), ("3", "a", 20, 29))
    store.add([("mail", "a", "t", ["main"], 7)], START_NS, "x")
    store.add([("mail", "a", "t", ["main"], 7)], START_NS + MINUTE_NS, "y")
    store.note_deploy(DeployNote("shop", "3", "with the new parser"), START_NS)
    late = deploys(store, TimeRange(START_NS + 15 * MINUTE_NS, DAY.until_unix_ns))
    assert [(deploy.version, deploy.annotation) for deploy in late] == [("3", "with the new parser")]
    assert [deploy.version for deploy in deploys(store, DAY, "mail")] == ["y"]
    assert len({deploy.deploy_id for deploy in deploys(store, DAY)}) == 3
