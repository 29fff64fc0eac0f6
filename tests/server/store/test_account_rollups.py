# SPDX-License-Identifier: Apache-2.0
"""Accounts of long ranges come from units, and are to the tick those of the windows: beside a store that was never rolled up."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from emberwatch.v1 import marks_pb2 as marks
from server.store import account_rollups, accounts, facts, tables
from server.store.protocol import AccountSlot, RetireLimits
from server.store.segments import Segments
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import MINUTE_NS, SECOND_NS, compact_all, decoded, new_store

DAY_NS = 86_400 * SECOND_NS
START = 20_000 * DAY_NS
HOURS = 30
FULL, STOPPED = marks.LOSS_REASON_MAP_FULL, marks.LOSS_REASON_STACK_ENOMEM
MINUTES = range(0, HOURS * 60, 5)


def push(store: SqlStore, number: int, host: str, samples: int, at_ns: int) -> None:
    """A window of five minutes with some losses."""
    losses = {FULL: samples % 5, STOPPED: samples % 3} if samples % 7 == 0 else None
    batch = batch_of([], losses=losses, host=host.encode())
    account = batch.accounts[0]
    account.stored, account.idle = samples, 13
    account.expected = samples + 13 + (losses or {}).get(FULL, 0) + (samples % 2)  # every other one has a tick that nothing explains
    request = push_of(batch, sequence=number, start_unix_ns=START + at_ns, agent_id=host.encode().ljust(16, b"."))
    request.window_end_unix_ns = request.window_start_unix_ns + 5 * MINUTE_NS
    store.append(decoded(request, request.window_end_unix_ns))


def filled(store: SqlStore) -> None:
    """Windows with gaps: host b is away for two hours twice, both hosts for some minutes now and then."""
    random = np.random.default_rng(5)
    away = random.random((2, len(MINUTES))) < 0.04
    away[1, 40:64] = away[1, 260:284] = True
    samples = random.integers(1, 400, (2, len(MINUTES)))
    for window, minute in enumerate(MINUTES):
        for at, host in enumerate("ab"):
            if not away[at, window]:
                push(store, 1 + minute, host, int(samples[at, window]), minute * MINUTE_NS)


SPANS = [
    (0, HOURS * 60, None), (0, HOURS * 60, 60), (0, HOURS * 60, 7), (10, 1510, None), (13, 1507, None), (60, 1500, 360), (205, 315, None),
    (195, 335, 10), (1295, 1299, None), (1435, 1445, 1), (0, 3000, None), (-5000, 90_000, None),
]  # fmt: skip
"""From, until and step in minutes."""


def answers(store: SqlStore, spans: list[tuple[int, int, int | None]] = SPANS) -> list[list[AccountSlot]]:
    return [
        store.accounts("cpu", START + first * MINUTE_NS, START + last * MINUTE_NS, step and step * MINUTE_NS) for first, last, step in spans
    ]


def count(store: SqlStore, table: sa.Table) -> int:
    with store._engine.connect() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> SqlStore:
    """A store of windows alone."""
    store = new_store(tmp_path_factory.mktemp("windows"))
    filled(store)
    return store


def test_sums_gaps_and_losses_are_those_of_the_windows(windows: SqlStore, tmp_path: Path) -> None:
    wanted = answers(windows)
    assert {FULL, STOPPED, marks.LOSS_REASON_AGENT_DOWN, marks.LOSS_REASON_UNEXPLAINED} <= set(wanted[0][1].lost)
    store = new_store(tmp_path)
    filled(store)
    now = START + HOURS * 3600 * SECOND_NS
    compact_all(store, now)
    assert count(store, tables.account_rollups) > 170
    assert answers(store) == wanted
    # Windows that came after that, and those of a server that knew nothing of units, found at the next start.
    late = [(5000, "a", 14, 215), (5001, "c", 21, 700), (5002, "b", 77, 250)]
    for number, host, samples, minute in late[:2]:
        push(store, number, host, samples, minute * MINUTE_NS)
    for number, host, samples, minute in late:
        push(windows, number, host, samples, minute * MINUTE_NS)
    assert answers(store) != wanted
    store._account_rollups._built_unix_ns = 0
    push(store, *late[2][:3], late[2][3] * MINUTE_NS)
    store.close()
    store = new_store(tmp_path)
    wanted = answers(windows)
    assert answers(store) == wanted
    compact_all(store, now)
    assert answers(store) == wanted
    # After two days the windows leave; ranges of whole units stay what they were.
    compact_all(store, now + 60 * 3600 * SECOND_NS)
    assert (count(store, tables.accounts), count(store, tables.losses)) == (0, 0)
    whole = [span for span in SPANS if not (span[0] % 10 or span[1] % 10 or (span[2] or 10) % 10)]
    assert len(whole) == 6
    assert answers(store, whole) == answers(windows, whole)
    # One that cuts a unit has a part of it, so that ranges side by side count each tick once.
    parts = answers(store, [(0, 217, None), (217, 1800, None)])
    stored = [{one.host: one.stored for one in part} for part in parts]
    (all_of_it,) = answers(store, [(0, 1800, None)])
    assert {one.host: one.stored for one in all_of_it} == {host: sum(part.get(host, 0) for part in stored) for host in "abc"}
    assert_slots_share_units(answers(store, [(0, 1800, None), (0, 1800, 7), (0, 1800, 2)]))
    # The gap to a window that comes now leads over what is kept in units alone.
    push(store, 9000, "a", 30, (HOURS + 100) * 3600 * SECOND_NS)
    push(windows, 9000, "a", 30, (HOURS + 100) * 3600 * SECOND_NS)
    later = [(1800, 2400, None), (1800, 8000, 600)]
    assert answers(store, later) == answers(windows, later)
    store.close()


def assert_slots_share_units(found: list[list[AccountSlot]]) -> None:
    """Slots that cut units hold, of each host, together what the first answer has, in each what became of what was due, and no holes."""
    whole = {one.host: one for one in found[0]}
    for slots in found[1:]:
        for host, one in whole.items():
            mine = [slot for slot in slots if slot.host == host]
            for name in ("stored", "idle", "filtered"):
                assert sum(getattr(slot, name) for slot in mine) == getattr(one, name)
            for reason, value in one.lost.items():
                lost = [slot.lost.get(reason, 0) for slot in mine]
                assert sum(lost) == value and min(lost) >= 0
        steps = np.diff([slot.slot_unix_ns for slot in slots if slot.host == "a"])
        assert np.unique(steps).tolist() == [steps[0]]
        for slot in slots:
            assert slot.expected == slot.stored + slot.idle + slot.filtered + sum(v for reason, v in slot.lost.items() if reason < 100)
            assert slot.lost.get(FULL, 0) <= slot.expected


def test_windows_are_added_up_before_more_are_read(windows: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, most = answers(windows), 0
    monkeypatch.setattr(accounts, "MOST_ROWS", 7)
    read = accounts.segments_of_windows

    def counted(rows: Sequence[Sequence[int]]) -> Segments:
        nonlocal most
        most = max(most, len(rows))
        return read(rows)

    monkeypatch.setattr(accounts, "segments_of_windows", counted)
    assert answers(windows) == wanted
    assert most == 7


def test_a_window_that_comes_while_a_unit_is_made_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(tmp_path)
    push(store, 1, "a", 30, 0)
    made = account_rollups._made

    def and_then_one_more(connection: sa.Connection, unit: account_rollups._Unit) -> dict[int, bytes]:
        blobs = made(connection, unit)
        monkeypatch.setattr(account_rollups, "_made", made)
        push(store, 2, "a", 7, MINUTE_NS)
        return blobs

    monkeypatch.setattr(account_rollups, "_made", and_then_one_more)
    compact_all(store, START + 3600 * SECOND_NS)
    ((slot,),) = answers(store, [(0, 10, None)])
    assert slot.stored == 37
    store.close()


@pytest.mark.parametrize("seen", [0, 99], ids=["lowered", "of an older server"])
def test_a_window_with_an_id_that_was_used_before_is_found(tmp_path: Path, seen: int) -> None:
    store = new_store(tmp_path)
    for minute in range(0, 60, 5):
        push(store, 1 + minute, "a", 30, minute * MINUTE_NS)
    compact_all(store, START + 60 * 3600 * SECOND_NS)
    assert count(store, tables.accounts) == 0
    with store._engine.begin() as connection:
        assert facts.read_time(connection, facts.ACCOUNTS_SEEN) == 0
        facts.raise_time(connection, facts.ACCOUNTS_SEEN, seen)
    store._account_rollups._built_unix_ns = 0  # As a server that knows nothing of units.
    push(store, 100, "a", 7, 1200 * MINUTE_NS)
    store.close()
    for _ in range(2):  # While the unit waits to be made, and when it is.
        store = new_store(tmp_path)
        ((slot,),) = answers(store, [(1200, 1210, None)])
        assert slot.stored == 7
        compact_all(store, START + 60 * 3600 * SECOND_NS)
        store.close()


def test_retention_takes_units_too_and_never_half(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for minute in range(0, 240, 10):
        push(store, 1 + minute, "a", 1, minute * MINUTE_NS)
    compact_all(store, START + 60 * 3600 * SECOND_NS)
    limits = RetireLimits(keep_s=59 * 3600 - 5 * 60, keep_bytes=0, keep_level0_s=0, keep_push_keys_s=0)
    store.retire(limits, START + 60 * 3600 * SECOND_NS)
    ((slot,),) = answers(store, [(0, 240, None)])
    assert slot.stored == 17  # of 24 windows, those from 70 minutes on: the floor of 65 cuts one
    store.close()


def test_a_clock_that_was_years_ahead_does_not_hide_the_accounts_of_later_windows(tmp_path: Path) -> None:
    """What a server that believed it left behind: both marks far in the future."""
    store = new_store(tmp_path)
    push(store, 1, "a", 7, 0)
    store.close()
    with sa.create_engine(f"sqlite:///{tmp_path / 'store.db'}").begin() as connection:
        for name in (facts.ACCOUNTS_BUILT, facts.ACCOUNTS_FLOOR):
            facts.write_time(connection, name, START + 400 * DAY_NS)
    store = new_store(tmp_path)
    now = START + 10 * MINUTE_NS
    store.retire(RetireLimits(), now)
    push(store, 2, "a", 23, 20 * MINUTE_NS)
    while not store.compact(now + 3 * 3600 * SECOND_NS).is_done:
        pass
    ((slot,),) = answers(store, [(10, 240, None)])
    assert slot.stored == 23
    assert store._account_rollups._built_unix_ns == START + 180 * MINUTE_NS
    store.close()
