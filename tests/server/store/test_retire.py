# SPDX-License-Identifier: Apache-2.0
"""Retention: oldest first, by age and by bytes, in bounded steps, never half a minute."""

import pytest

from server.store import facts, retire
from server.store.protocol import RetireLimits
from server.store.push import AppendStatus
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import (
    ALL_TIME,
    MINUTE_NS,
    MINUTE_UNIX_NS,
    SECOND_NS,
    STACK,
    compact_all,
    decoded,
    leap,
    push_rows,
    timeline_total,
    totals,
)

HOUR_S = 3600
LATER = MINUTE_UNIX_NS + 20 * MINUTE_NS
NO_LIMIT = RetireLimits(keep_s=0, keep_bytes=0, keep_level0_s=0, keep_push_keys_s=0)


def push_minutes(store: SqlStore, minutes: int = 5) -> None:
    """A window a minute, minute n with 2 ** n samples."""
    for minute in range(minutes):
        push_rows(store, [("web", "t", STACK, 2**minute)], minute + 1, MINUTE_UNIX_NS + minute * MINUTE_NS + 5 * SECOND_NS)


def count(store: SqlStore, table: str) -> int:
    with store._engine.connect() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_without_limits_all_stays(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, LATER)
    leap(store, LATER + 10**18)
    assert store.retire(NO_LIMIT, LATER + 10**18).is_done
    assert (count(store, "batches"), count(store, "blocks"), totals(store)) == (5, 5, {"web": 31})


def test_batches_in_blocks_leave_first_and_totals_stay(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, MINUTE_UNIX_NS + 5 * MINUTE_NS)  # minutes 0, 1 and 2
    limits = RetireLimits(keep_s=0, keep_level0_s=60, keep_push_keys_s=0)
    assert store.retire(limits, LATER).batches == 3
    assert (count(store, "batches"), count(store, "blocks"), totals(store)) == (2, 3, {"web": 31})
    assert timeline_total(store) == 31


def test_range_that_cuts_a_minute_without_batches_takes_it_where_it_starts(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, LATER)
    store.retire(RetireLimits(keep_s=0, keep_level0_s=60, keep_push_keys_s=0), LATER)
    cut = MINUTE_UNIX_NS + 2 * MINUTE_NS + 30 * SECOND_NS
    before, after = totals(store, span=(0, cut)), totals(store, span=(cut, LATER))
    assert (before, after) == ({"web": 1 + 2 + 4}, {"web": 8 + 16})


def test_what_is_past_its_age_leaves_by_whole_minutes(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, LATER)
    now = MINUTE_UNIX_NS + 2 * MINUTE_NS + 30 * SECOND_NS + HOUR_S * SECOND_NS
    assert store.retire(RetireLimits(keep_s=HOUR_S), now).is_done
    assert totals(store) == {"web": 4 + 8 + 16}
    assert sum(one.stored for one in store.accounts("cpu", 0, LATER)) == 4 + 8 + 16


def test_too_many_bytes_cost_the_oldest_minutes(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, MINUTE_UNIX_NS + 8 * MINUTE_NS)  # all five minutes, and nothing longer yet
    store.retire(RetireLimits(keep_s=0, keep_level0_s=1), LATER)  # blocks only
    with store._engine.connect() as connection:
        sizes = [row[0] for row in connection.exec_driver_sql("SELECT size_bytes FROM blocks ORDER BY start_unix_ns")]
    assert store.retire(RetireLimits(keep_bytes=sum(sizes), keep_s=0), LATER).blocks == 0
    retired = store.retire(RetireLimits(keep_bytes=sum(sizes) - 1, keep_s=0), LATER)
    assert (retired.blocks, retired.size_bytes) == (1, sizes[0])
    assert totals(store) == {"web": 2 + 4 + 8 + 16}


def test_steps_are_bounded_and_no_minute_is_seen_by_half(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retire, "MOST_ROWS", 2)
    for service in ("a", "b", "c"):
        push_rows(store, [(service, "t", STACK, 7)], ord(service), MINUTE_UNIX_NS)
    push_rows(store, [("new", "t", STACK, 23)], 1, MINUTE_UNIX_NS + HOUR_S * SECOND_NS)
    compact_all(store, LATER + HOUR_S * SECOND_NS)
    limits, now = RetireLimits(keep_s=HOUR_S // 2), MINUTE_UNIX_NS + HOUR_S * SECOND_NS
    first = store.retire(limits, now)
    assert (first.is_done, first.blocks, count(store, "blocks")) == (False, 2, 2)
    assert totals(store) == {"new": 23}
    while not store.retire(limits, now).is_done:
        pass
    assert (count(store, "blocks"), count(store, "batches")) == (1, 1)


def test_keys_of_pushes_are_kept_for_their_time(store: SqlStore) -> None:
    request = push_of(batch_of([("web", "t", STACK, 7)]))
    received = request.window_end_unix_ns
    store.append(decoded(request))
    leap(store, received + 72 * HOUR_S * SECOND_NS)
    store.retire(RetireLimits(keep_s=0), received + 72 * HOUR_S * SECOND_NS)
    assert store.append(decoded(request)).status is AppendStatus.DUPLICATE
    store.retire(RetireLimits(keep_s=0), received + 72 * HOUR_S * SECOND_NS + 1)
    assert count(store, "push_keys") == 0


DAY_NS = 86_400 * SECOND_NS
YEAR_AHEAD = MINUTE_UNIX_NS + 400 * DAY_NS


def drain(store: SqlStore, limits: RetireLimits, now_unix_ns: int) -> None:
    while not store.retire(limits, now_unix_ns).is_done:
        pass


def test_a_clock_that_leaps_and_comes_back_costs_nothing(store: SqlStore) -> None:
    """Before NTP, after a resume: no window, no key and no floor may go by it, and what comes afterwards is seen."""
    push_minutes(store)
    for later in range(0, 50 * 60, 20):  # every 20 s for most of an hour
        drain(store, RetireLimits(), YEAR_AHEAD + later * SECOND_NS)
    assert (totals(store), count(store, "push_keys")) == ({"web": 31}, 5)
    push_rows(store, [("web", "t", STACK, 100)], 9, LATER)
    drain(store, RetireLimits(), LATER + MINUTE_NS)
    assert totals(store) == {"web": 131}
    with store._engine.connect() as connection:
        assert facts.read_time(connection, facts.DATA_FLOOR) == 0


def test_a_server_that_was_off_for_a_year_goes_on_removing_after_an_hour(store: SqlStore) -> None:
    push_minutes(store)
    for later in range(0, 61 * 60, 20):
        drain(store, RetireLimits(), YEAR_AHEAD + later * SECOND_NS)
    assert (totals(store), count(store, "batches"), count(store, "push_keys")) == ({}, 0, 0)


def test_floors_that_a_wrong_clock_left_in_the_future_come_down(store: SqlStore) -> None:
    push_minutes(store)
    with store._units.begin() as unit:
        for name in (facts.DATA_FLOOR, facts.LEVEL0_FLOOR):
            facts.write_time(unit.connection, name, YEAR_AHEAD)
    assert totals(store) == {}
    store.retire(RetireLimits(), LATER)
    push_rows(store, [("web", "t", STACK, 100)], 9, LATER + SECOND_NS)
    compact_all(store, LATER + 5 * MINUTE_NS)
    assert totals(store) == {"web": 100}
    cut = LATER // MINUTE_NS * MINUTE_NS + 70 * SECOND_NS
    assert totals(store, span=(cut, LATER + 10 * MINUTE_NS)) == {}


def test_series_of_which_nothing_is_left_are_forgotten_a_day_and_a_sweep_later(store: SqlStore) -> None:
    push_minutes(store)
    compact_all(store, LATER)
    limits = RetireLimits(keep_s=600)
    for hours, kept in ((2, 1), (24, 1), (25, 0)):
        now = LATER + hours * HOUR_S * SECOND_NS
        leap(store, now)
        while not store.retire(limits, now).is_done:
            pass
        assert (count(store, "series"), len(store.series("cpu", *ALL_TIME))) == (kept, kept)
    push_rows(store, [("web", "t", STACK, 100)], 9, now)
    assert (totals(store), count(store, "series"), count(store, "services")) == ({"web": 100}, 1, 1)


def test_series_that_still_has_data_or_had_some_today_stays(store: SqlStore) -> None:
    push_minutes(store)
    push_rows(store, [("late", "t", STACK, 7)], 1, MINUTE_UNIX_NS, host=b"late")
    limits = RetireLimits(keep_s=7 * 24 * HOUR_S)
    for hours in (26, 28, 30):
        leap(store, LATER + hours * HOUR_S * SECOND_NS)
        assert store.retire(limits, LATER + hours * HOUR_S * SECOND_NS).is_done
    assert (totals(store), count(store, "series")) == ({"web": 31, "late": 7}, 2)
