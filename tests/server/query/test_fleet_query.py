# SPDX-License-Identifier: Apache-2.0
"""What agents cost is told from what they say of themselves."""

from collections.abc import Mapping

import numpy as np

from server.query.fleet_query import agents, fleet
from server.query.profile_query import ProfileQuery
from server.query.slots import choose_slots
from server.query.timerange import TimeRange
from server.store.protocol import ColumnInfo, KindInfo, Selection, SeriesInfo, Timeline
from server.store.push import ValueMerge
from tests.server.query.fakes import NOW_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore, agent

RANGE = TimeRange(START_NS, NOW_NS)
OVERHEAD = KindInfo(
    "overhead",
    (
        ColumnInfo("cpu_ns", "ns", ValueMerge.SUM),
        ColumnInfo("bpf_ns", "ns", ValueMerge.SUM),
        ColumnInfo("rss_bytes", "bytes", ValueMerge.MAX),
        ColumnInfo("map_bytes", "bytes", ValueMerge.MAX),
    ),
)


class StoreWithCosts(FakeStore):
    """Host "a" used 20 ms and 30 ms of CPU in its first two windows of 10 s."""

    def kinds(self) -> list[KindInfo]:
        return [*super().kinds(), OVERHEAD]

    def series(self, kind: str, from_unix_ns: int, until_unix_ns: int) -> list[SeriesInfo]:
        if kind != "overhead":
            return super().series(kind, from_unix_ns, until_unix_ns)
        labels: Mapping[str, str] = {"service": "emberwatch-agent", "host": "a"}
        return [SeriesInfo(77, "emberwatch-agent", kind, labels, START_NS, START_NS + WINDOW_NS)]

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        if selection.kind != "overhead":
            return super().timeline(selection, step_ns)
        values = {"cpu_ns": (20_000_000, 30_000_000), "bpf_ns": (7_000_000, 3_000_000), "rss_bytes": (41, 43), "map_bytes": (11, 7)}
        columns = {name: np.array([[first, second, 0, 0, 0, 0]], np.uint64) for name, (first, second) in values.items()}
        has_data = np.array([[True, True, False, False, False, False]])
        return Timeline(selection.from_unix_ns, step_ns, np.array([77]), columns, has_data)


def test_costs_are_shares_of_a_core_while_the_agent_ran() -> None:
    store = StoreWithCosts()
    store.agent_infos = [agent("a"), agent("b")]
    a, b = agents(ProfileQuery(store, FakeNamer(), lambda: NOW_NS), RANGE)
    assert (a.cpu_share, a.bpf_share, a.rss_bytes, a.map_bytes) == (0.0025, 0.0005, 43, 11)
    assert (b.cpu_share, b.bpf_share, b.rss_bytes, b.map_bytes) == (None, None, None, None)


def test_a_window_without_a_known_version_does_not_hide_the_version() -> None:
    store = FakeStore()
    store.add([("shop", "a", "t", ["f"], 7)], START_NS, version="1.0")
    store.add([("shop", "a", "t", ["f"], 7)], START_NS + WINDOW_NS, version="")
    (shop,) = fleet(ProfileQuery(store, FakeNamer(), lambda: NOW_NS), choose_slots(RANGE, None)).services
    assert (shop.version, shop.versions) == ("1.0", 1)
