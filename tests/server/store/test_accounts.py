# SPDX-License-Identifier: Apache-2.0
"""Accounts by host and slot: sums, losses by reason, gaps of agents, and what is left over."""

from emberwatch.v1 import marks_pb2 as marks
from server.store.protocol import AccountSlot
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import MINUTE_NS, MINUTE_UNIX_NS, SECOND_NS, STACK, decoded

WINDOW = 10 * SECOND_NS
DOWN, FULL = marks.LOSS_REASON_AGENT_DOWN, marks.LOSS_REASON_MAP_FULL


def push_window(store: SqlStore, number: int, samples: int, losses: dict[int, int] | None = None, host: bytes = b"web-1") -> None:
    """The window that starts number * 10 s after the minute."""
    batch = batch_of([("web", "t", STACK, samples)], losses=losses, host=host)
    request = push_of(batch, sequence=number + 1, start_unix_ns=MINUTE_UNIX_NS + number * WINDOW, agent_id=host.ljust(16, b"."))
    store.append(decoded(request))


def assert_conserved(slots: list[AccountSlot]) -> None:
    for one in slots:
        assert one.expected == one.stored + one.idle + one.filtered + sum(v for reason, v in one.lost.items() if reason < 100)


def test_one_slot_adds_up_the_range_by_host(store: SqlStore) -> None:
    push_window(store, 0, 7, {FULL: 3, marks.LOSS_REASON_STACK_ENOMEM: 2})
    push_window(store, 1, 23, {FULL: 5})
    push_window(store, 0, 11, host=b"db-1")
    slots = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert [(one.host, one.expected, one.stored, dict(one.lost)) for one in slots] == [
        ("db-1", 11, 11, {}),
        ("web-1", 38, 30, {FULL: 8, marks.LOSS_REASON_STACK_ENOMEM: 2}),
    ]
    assert_conserved(slots)


def test_slots_follow_the_start_of_windows(store: SqlStore) -> None:
    for number, samples in enumerate((7, 23, 5)):
        push_window(store, number, samples)
    slots = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS, 20 * SECOND_NS)
    assert [(one.slot_unix_ns - MINUTE_UNIX_NS, one.stored) for one in slots] == [(0, 30), (20 * SECOND_NS, 5)]


def test_gap_between_windows_is_agent_down_at_the_rate_before_it(store: SqlStore) -> None:
    push_window(store, 0, 30)  # 30 ticks in 10 s
    push_window(store, 4, 7)  # silent from 10 s to 40 s: 90 ticks
    slots = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert [(one.expected, one.stored, dict(one.lost)) for one in slots] == [(127, 37, {DOWN: 90})]
    by_slot = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS, 20 * SECOND_NS)
    assert [one.lost.get(DOWN, 0) for one in by_slot] == [30, 60, 0]
    assert_conserved(slots + by_slot)


def test_gap_that_leads_into_or_out_of_the_range_counts_for_its_part(store: SqlStore) -> None:
    push_window(store, 0, 30)
    push_window(store, 4, 7)
    inside = store.accounts("cpu", MINUTE_UNIX_NS + 2 * WINDOW, MINUTE_UNIX_NS + 3 * WINDOW)
    assert [(one.expected, dict(one.lost)) for one in inside] == [(30, {DOWN: 30})]


def test_gap_that_late_windows_fill_is_none(store: SqlStore) -> None:
    for number in (0, 3, 2, 1):
        push_window(store, number, 7)
    (slot,) = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert (slot.expected, dict(slot.lost)) == (28, {})


def test_gap_of_one_host_is_not_filled_by_another(store: SqlStore) -> None:
    push_window(store, 0, 30)
    push_window(store, 1, 30, host=b"db-1")
    push_window(store, 2, 30)
    slots = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert {one.host: dict(one.lost) for one in slots} == {"db-1": {}, "web-1": {DOWN: 30}}


def test_what_no_reason_explains_is_shown(store: SqlStore) -> None:
    batch = batch_of([("web", "t", STACK, 7)])
    batch.accounts[0].expected = 12
    store.append(decoded(push_of(batch, start_unix_ns=MINUTE_UNIX_NS)))
    (slot,) = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert dict(slot.lost) == {marks.LOSS_REASON_UNEXPLAINED: 5}


def test_idle_host_without_a_series_has_an_account(store: SqlStore) -> None:
    batch = batch_of([])
    batch.accounts[0].expected = batch.accounts[0].idle = 990
    store.append(decoded(push_of(batch, start_unix_ns=MINUTE_UNIX_NS)))
    (slot,) = store.accounts("cpu", MINUTE_UNIX_NS, MINUTE_UNIX_NS + MINUTE_NS)
    assert (slot.expected, slot.idle, dict(slot.lost)) == (990, 990, {})
    push_window(store, 1, 7)
    assert store.kinds()[0].columns[0].name == "samples"


def test_kind_or_range_without_data_has_no_slots(store: SqlStore) -> None:
    push_window(store, 0, 7)
    assert store.accounts("offcpu", 0, 2**62) == []
    assert store.accounts("cpu", MINUTE_UNIX_NS + WINDOW, MINUTE_UNIX_NS + MINUTE_NS) == []
    assert store.accounts("cpu", 5, 5) == []
