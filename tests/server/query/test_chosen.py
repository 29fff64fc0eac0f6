# SPDX-License-Identifier: Apache-2.0
"""Parts of what was chosen: by label, the largest first, in bounded number."""

from server.query.chosen import MOST_GROUPS, By, split
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.query.fakes import NOW_NS, START_NS, FakeNamer, FakeStore


def test_beyond_the_bound_the_smallest_are_one_group() -> None:
    store = FakeStore()
    hosts = MOST_GROUPS + 3
    store.add([("shop", f"host-{number}", "t", ["main"], 1 + number) for number in range(hosts)])
    query, span = ProfileQuery(store, FakeNamer(), lambda: NOW_NS), TimeRange(START_NS, NOW_NS)
    chosen = query.choose(parse_selector("cpu{}"), span)
    groups = list(split(store, chosen, By("host", "samples"), span))
    assert [name for name, _ in groups][:2] == [f"host-{hosts - 1}", f"host-{hosts - 2}"]
    assert len(groups) == MOST_GROUPS and groups[-1][0] == "[4 others]"
    assert sum(len(part.series) for _, part in groups) == len(chosen.series)


def test_series_without_the_label_are_a_group() -> None:
    store = FakeStore()
    store.add([("shop", "a", "t", ["main"], 7)])
    query, span = ProfileQuery(store, FakeNamer(), lambda: NOW_NS), TimeRange(START_NS, NOW_NS)
    chosen = query.choose(parse_selector("cpu{}"), span)
    assert [name for name, _ in split(store, chosen, By("team", "samples"), span)] == ["[no team]"]
