# SPDX-License-Identifier: Apache-2.0
"""Versions that come back: found once, with the hosts that follow, and not where nothing came back."""

from server.fleet.kept import keep_return, kept_returns
from server.fleet.returns import find_returns
from server.fleet.runs import Return
from server.query.timerange import TimeRange
from tests.server.fleet.rollouts import NEW, OLD, Rollout
from tests.server.query.fakes import START_NS, WINDOW_NS

COSTS = {"1": OLD, "2": NEW}
BOTH = {"a": "1", "b": "1"}


def found(rollout: Rollout) -> list[Return]:
    span = TimeRange(START_NS - 60 * WINDOW_NS, rollout.now_ns)
    news = find_returns(rollout.store, span, kept_returns(rollout.store.documents))
    for back in news:
        keep_return(rollout.store.documents, back)
    return news


def test_a_rollback_is_found_once_and_hosts_follow() -> None:
    rollout = Rollout()
    rollout.run(30, BOTH, COSTS)
    rollout.run(60, {"a": "2", "b": "2"}, COSTS)
    assert found(rollout) == []
    back_ns = rollout.now_ns
    rollout.run(6, {"a": "1", "b": "2"}, COSTS)
    (back,) = found(rollout)
    assert (back.version, back.ended_unix_ns, dict(back.first_by_host)) == ("1", START_NS + 30 * WINDOW_NS, {"a": back_ns})
    assert found(rollout) == []
    rollout.run(6, BOTH, COSTS)
    (more,) = found(rollout)
    assert dict(more.first_by_host) == {"a": back_ns, "b": back_ns + 6 * WINDOW_NS}
    assert found(rollout) == []
    assert len(kept_returns(rollout.store.documents)["shop"]) == 1


def test_side_by_side_on_a_host_nothing_came_back() -> None:
    rollout = Rollout()
    rollout.run(20, {"a": "1"}, COSTS)
    for _ in range(50):
        rollout.run(1, {"a": "1"}, COSTS)
        rollout.now_ns -= WINDOW_NS
        rollout.run(1, {"a": "2"}, COSTS)
    assert found(rollout) == []


def test_a_pause_without_another_version_is_no_return() -> None:
    rollout = Rollout()
    rollout.run(20, {"a": "1", "b": "2"}, COSTS)
    rollout.now_ns += 90 * WINDOW_NS
    rollout.run(20, {"a": "1", "b": "2"}, COSTS)
    assert found(rollout) == []
