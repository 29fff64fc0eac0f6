# SPDX-License-Identifier: Apache-2.0
"""Compaction: totals are equal before, between steps and after, late windows included; nothing counts twice, nothing is split."""

import threading
from dataclasses import replace

import pytest

from server.errors import LimitExceeded
from server.query.merge import key_weights
from server.store import compact, select
from server.store.protocol import Selection
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.event_batches import KINDS, EventRow, Window, push_window
from tests.support.pushes import (
    ALL_TIME,
    MINUTE_NS,
    MINUTE_UNIX_NS,
    SECOND_NS,
    STACK,
    compact_all,
    decoded,
    push_rows,
    timeline_total,
    totals,
)

LATER = MINUTE_UNIX_NS + 10 * MINUTE_NS
WINDOW = 10 * SECOND_NS


def push_minutes(store: SqlStore, hosts: int = 2, windows: int = 12) -> int:
    """Two minutes of windows from several hosts; gives the samples in them."""
    total = 0
    for window in range(windows):
        for host in range(hosts):
            rows = [("web", "t", STACK, 7 + window), ("web", "t", [f"app+{window:#x}00", *STACK], 23), ("db", "t", STACK, 5)]
            push_rows(store, rows, window + 1, MINUTE_UNIX_NS + window * WINDOW, host=f"host-{host}".encode())
            total += 7 + window + 23 + 5
    return total


def block_count(store: SqlStore) -> int:
    with store._engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM blocks").scalar_one())


def test_minutes_become_one_block_a_service_with_all_hosts(store: SqlStore) -> None:
    total = push_minutes(store)
    by_service = totals(store)
    assert compact_all(store, LATER) == 24
    assert block_count(store) == 4  # two services, two minutes
    assert totals(store) == by_service
    assert timeline_total(store) == sum(by_service.values()) == total


def test_totals_are_equal_after_every_step(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "MOST_BATCHES", 5)
    total, by_service = push_minutes(store), totals(store)
    while not store.compact(LATER).is_done:
        assert totals(store) == by_service
        assert timeline_total(store) == total
    assert block_count(store) == 4


def test_a_step_takes_no_more_rows_than_memory_is_for_them(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    total = push_minutes(store)
    for budget, taken in ((1, 1), (1 << 20, 11)):  # one at least; then what is left of the first minute
        monkeypatch.setattr(compact, "MOST_BYTES", budget)
        assert store.compact(LATER).batches == taken
    compact_all(store, LATER)
    assert timeline_total(store) == sum(totals(store).values()) == total


@pytest.mark.parametrize(("bound", "value"), [("MOST_INDEX_S", -1.0), ("MOST_CELLS", 1)])
def test_timeline_that_takes_too_long_or_is_too_large_is_refused_with_a_remedy(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    push_minutes(store)
    compact_all(store, LATER)
    monkeypatch.setattr(select, bound, value)
    with pytest.raises(LimitExceeded, match="ask for"):
        timeline_total(store)


def test_running_minute_and_the_two_before_stay_batches(store: SqlStore) -> None:
    push_minutes(store)
    assert compact_all(store, MINUTE_UNIX_NS + 3 * MINUTE_NS - 1) == 0
    assert compact_all(store, MINUTE_UNIX_NS + 3 * MINUTE_NS) == 12


def test_late_window_counts_at_once_and_joins_the_block_of_its_minute(store: SqlStore) -> None:
    total = push_minutes(store)
    compact_all(store, LATER)
    push_rows(store, [("web", "t", STACK, 100), ("cache", "t", STACK, 3)], 99, MINUTE_UNIX_NS + WINDOW)
    late = dict(totals(store))
    assert sum(late.values()) == timeline_total(store) == total + 103
    assert compact_all(store, LATER) == 1
    assert block_count(store) == 5
    assert totals(store) == late
    assert timeline_total(store) == total + 103


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_range_takes_windows_that_start_in_it_whatever_it_cuts(store: SqlStore, is_compacted: bool) -> None:
    push_minutes(store, hosts=1)
    if is_compacted:
        compact_all(store, LATER)
    # Windows 0..11 have 7 + n + 23 + 5 samples; a window starts every 10 s.
    for first, last in ((0, 12), (1, 12), (0, 11), (3, 4), (5, 7), (6, 12), (7, 7)):
        span = (MINUTE_UNIX_NS + first * WINDOW, MINUTE_UNIX_NS + last * WINDOW)
        expected = sum(35 + window for window in range(first, last))
        assert sum(totals(store, span=span).values()) == expected
        assert timeline_total(store, span=span) == expected
    inside = (MINUTE_UNIX_NS + 1, MINUTE_UNIX_NS + WINDOW)  # the first window started just before it
    assert totals(store, span=inside) == {}


def test_selected_series_only_are_read_from_blocks_and_batches(store: SqlStore) -> None:
    push_minutes(store, hosts=2)
    wanted = frozenset(
        info.series_id for info in store.series("cpu", 0, 2**62) if info.labels["host"] == "host-1" and info.labels["service"] == "web"
    )
    selection = Selection("cpu", 0, LATER, wanted, ("samples",))
    expected = sum(30 + window for window in range(12))
    for _ in range(2):
        pieces = list(store.select(selection))
        assert sum(int(piece.columns["samples"].sum()) for piece in pieces) == expected
        assert {piece.service for piece in pieces} == {"web"}
        compact_all(store, LATER)
    assert int(store.timeline(replace(selection, from_unix_ns=MINUTE_UNIX_NS), MINUTE_NS).columns["samples"].sum()) == expected


def test_maxima_stay_maxima_and_sampling_rates_may_change_within_a_minute(store: SqlStore) -> None:
    for window, (samples, period, rss) in enumerate([(7, 10, 500), (23, 20, 300)]):
        batch = batch_of([("web", "t", STACK, samples)])
        batch.series[0].columns[1].times_first = period
        batch.series[0].columns.add(name="rss_bytes", unit="bytes", merge="MERGE_MAX", times_first=0).values.CopyFrom(
            type(batch.series[0].columns[0].values)(data=rss.to_bytes(2, "little"), width=2)
        )
        store.append(decoded(push_of(batch, sequence=window + 1, start_unix_ns=MINUTE_UNIX_NS + window * WINDOW)))
    for _ in range(2):
        assert totals(store, column="ns") == {"web": 7 * 10 + 23 * 20}
        assert totals(store, column="rss_bytes") == {"web": 500}
        timeline = store.timeline(Selection("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS), MINUTE_NS)
        assert (timeline.columns["ns"].tolist(), timeline.columns["rss_bytes"].tolist()) == ([[530]], [[500]])
        compact_all(store, LATER)


def test_questions_see_one_total_while_windows_arrive_and_blocks_are_made(store: SqlStore) -> None:
    total = push_minutes(store, hosts=3)
    span, seen, is_over = (MINUTE_UNIX_NS, MINUTE_UNIX_NS + 2 * MINUTE_NS), list[int](), threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            seen.append(sum(totals(store, span=span).values()))

    reader = threading.Thread(target=ask)
    reader.start()
    try:
        for sequence in range(20):
            push_rows(store, [("web", "t", [f"app+{sequence:#x}99", *STACK], 1)], sequence + 100, MINUTE_UNIX_NS + 5 * MINUTE_NS)
            store.compact(LATER)
    finally:
        is_over.set()
        reader.join()
    assert set(seen) == {total}


def event_totals(store: SqlStore, kind: str) -> dict[str, int]:
    """Total of every column of a kind."""
    names = tuple(column.name for info in store.kinds() if info.name == kind for column in info.columns)
    merged = key_weights(store, Selection(kind, *ALL_TIME), names)
    return {name: value for weights in merged.services.values() for name, value in weights.totals.items() if value}


def test_kinds_with_many_columns_keep_sums_largest_values_objects_and_seconds(store: SqlStore) -> None:
    """85 columns, absent ones in some windows, values beyond 2^32, rows that differ in one part of their key only."""
    every = {name: 3 << 33 for name, _, _ in KINDS["tcp"]}
    lock = {"count": 2, "ns": 5, "max_ns": 7}
    keys = [{"stack": ["main", "take"]}, {"second": ["main", "give"]}, {"object": "a"}, {"thread": "t"}, {"wait_class": "lock"}, {}]
    for at in range(12):
        rows = [EventRow(every if at % 2 else {"connects": 23, "rtt_max_ns": at}, object="out :80")]
        locks = [EventRow({**lock, "max_ns": 7 + at}, **key) for key in keys]
        push_window(store, Window({"tcp": rows, "lock": locks}, host=f"host-{at % 2}".encode()), at + 1, MINUTE_UNIX_NS + at * WINDOW)
    assert len(KINDS["tcp"]) > 64
    before = event_totals(store, "tcp"), event_totals(store, "lock")
    maxima = {"rtt_max_ns"}
    sums = {name: 6 * (3 << 33) + (6 * 23 if name == "connects" else 0) for name in every if name not in maxima}
    assert before == ({**sums, "rtt_max_ns": 3 << 33}, {"count": 12 * 6 * 2, "ns": 12 * 6 * 5, "max_ns": 18})
    compact_all(store, LATER)
    assert (event_totals(store, "tcp"), event_totals(store, "lock")) == before
    assert block_count(store) == 4  # two kinds, two minutes
    (weights,) = key_weights(store, Selection("lock", *ALL_TIME), ("count",)).services.values()
    assert sorted(weights.columns["count"].tolist())[-6:] == [24] * 6
    timeline = store.timeline(Selection("lock", MINUTE_UNIX_NS, MINUTE_UNIX_NS + 2 * MINUTE_NS), MINUTE_NS)
    assert timeline.columns["max_ns"].max(axis=0).tolist() == [12, 18]
