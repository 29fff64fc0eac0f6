# SPDX-License-Identifier: Apache-2.0
"""Hosts are replicates; stretches of time on each when there are few hosts; nothing is lost or counted twice."""

from pathlib import Path

import numpy as np
import pytest

from server.errors import LimitExceeded
from server.query import replicates
from server.query.merge import MergeBudget, Meter
from server.query.profile_query import ProfileQuery
from server.query.replicates import MOST_REPLICATES, Groups, Wanted, replicated_weights, replication
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, WINDOW_NS, FakeNamer, FakeStore
from tests.support.batches import PERIOD_NS as BATCH_PERIOD_NS
from tests.support.pushes import MINUTE_NS, MINUTE_UNIX_NS, SECOND_NS, compact_all, new_store, push_rows

RANGE = TimeRange(START_NS, START_NS + 64 * WINDOW_NS)
WANTED = Wanted("ns", "samples", "observed")


def store_of(hosts: int, windows: int, service: str = "shop") -> FakeStore:
    store = FakeStore()
    for window in range(windows):
        rows = [(service, f"h{host}", "t", ["main", f"f{host % 3}"], 7 + window) for host in range(hosts)]
        store.add(rows, START_NS + window * WINDOW_NS)
    return store


def chosen_of(store: FakeStore, text: str = "cpu{}"):  # type: ignore[no-untyped-def]
    return ProfileQuery(store, FakeNamer(), lambda: NOW_NS).choose(parse_selector(text), RANGE)


def test_every_row_is_in_one_replicate() -> None:
    store = store_of(hosts=5, windows=64)
    weights = replicated_weights(store, chosen_of(store), RANGE, WANTED)
    samples = 5 * sum(7 + window for window in range(64))
    values = weights.services["shop"].values
    assert (weights.samples, weights.observed, len(weights.hosts), weights.rows) == (samples, samples, 5, 5 * 64)
    assert int(values.sum()) == samples * PERIOD_NS
    assert (weights.start_unix_ns, weights.end_unix_ns) == (START_NS, START_NS + 64 * WINDOW_NS)


def test_few_hosts_are_cut_in_time_and_never_mixed() -> None:
    store = store_of(hosts=5, windows=64)
    cut = replication(store, chosen_of(store), RANGE)
    assert (cut.host_groups, cut.stretches, cut.count) == (5, 6, 30)
    values = replicated_weights(store, chosen_of(store), RANGE, WANTED).services["shop"].values
    assert (values > 0).sum(axis=1).max() == 1  # each host has one stack


def test_of_many_hosts_some_share_a_replicate() -> None:
    store = store_of(hosts=40, windows=2)
    cut = replication(store, chosen_of(store), RANGE)
    assert (cut.host_groups, cut.stretches) == (MOST_REPLICATES, 1)


def test_stretches_follow_the_data_and_not_the_range() -> None:
    store = store_of(hosts=1, windows=32)  # of a range of 64 windows
    weights = replicated_weights(store, chosen_of(store), RANGE, WANTED)
    assert int(weights.services["shop"].values.any(axis=1).sum()) >= 26


def test_a_huge_dictionary_has_fewer_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicates, "MOST_CELLS", 48)
    store = store_of(hosts=40, windows=1)  # 4 keys
    assert replication(store, chosen_of(store), RANGE).count == 12


def test_the_budget_of_a_graph_holds_for_all_groups_of_a_side() -> None:
    store = store_of(hosts=2, windows=2)
    rows = replicated_weights(store, chosen_of(store), RANGE, WANTED).rows
    groups = Groups(2, Meter(MergeBudget(rows=2 * rows - 1)))
    assert replicated_weights(store, chosen_of(store), RANGE, WANTED, groups).rows == rows
    with pytest.raises(LimitExceeded, match=f"more than {2 * rows - 1} rows"):
        replicated_weights(store, chosen_of(store), RANGE, WANTED, groups)


def test_nothing_is_nothing() -> None:
    store = store_of(hosts=1, windows=1)
    weights = replicated_weights(store, chosen_of(store, 'cpu{service="none"}'), RANGE, WANTED)
    assert (dict(weights.services), weights.samples, len(weights.hosts)) == ({}, 0, 0)
    assert np.array_equal(replication(store, chosen_of(store, 'cpu{service="none"}'), RANGE).host_group, [0])


def test_blocks_that_hold_all_hosts_are_taken_apart(tmp_path: Path) -> None:
    """Three hosts, two minutes of six windows; each host has a stack of its own: 7, 11 and 13 samples a window."""
    store = new_store(tmp_path)
    for window in range(12):
        for host, samples in (("a", 7), ("b", 11), ("c", 13)):
            row = ("web", "t", [f"app+{ord(host):#x}"], samples)
            push_rows(store, [row], window + 1, MINUTE_UNIX_NS + window * 10 * SECOND_NS, host=host.encode())
    span = TimeRange(MINUTE_UNIX_NS, MINUTE_UNIX_NS + 2 * MINUTE_NS)
    query = ProfileQuery(store, FakeNamer(), lambda: span.until_unix_ns)
    for is_compacted in (False, True):
        if is_compacted:
            assert compact_all(store, span.until_unix_ns + 10 * MINUTE_NS) == 36
        chosen = query.choose(parse_selector("cpu{}"), span)
        in_samples = replicated_weights(store, chosen, span, Wanted("samples", "samples", "observed"))
        in_ns = replicated_weights(store, chosen, span, Wanted("ns", "samples", "observed"))
        values = in_samples.services["web"].values
        for weights in (in_samples, in_ns):
            assert (weights.samples, weights.observed, len(weights.hosts)) == (12 * 31, 12 * 31, 3)
        assert sorted(int(v) for v in values.sum(axis=0) if v) == [12 * 7, 12 * 11, 12 * 13]
        assert (values > 0).sum(axis=1).max() == 1
        assert (in_ns.services["web"].values == values * np.uint64(BATCH_PERIOD_NS)).all()
    store.close()
