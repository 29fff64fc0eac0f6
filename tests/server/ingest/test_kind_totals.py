# SPDX-License-Identifier: Apache-2.0
"""Totals by service are exact for what was stored, and bounded."""

import pytest

from server.ingest import kind_totals
from server.ingest.kind_totals import OTHER, KindTotals
from tests.support.event_batches import EventRow, Window, event_batch, timed
from tests.support.pushes import decoded, push_of

MS = 10**6


def added(*windows: Window) -> KindTotals:
    totals = KindTotals()
    for at, window in enumerate(windows, start=1):
        totals.add(decoded(push_of(event_batch(window), sequence=at)))
    return totals


def test_columns_that_add_up_are_added_by_service() -> None:
    rows = [EventRow(timed(3 * MS, 5 * MS), object="read"), EventRow(timed(MS), object="write"), EventRow(timed(MS), "mail", object="read")]
    totals = added(Window({"syscall": rows}), Window({"syscall": rows[:1], "offcpu": [EventRow({"count": 7, "ns": 7})]})).totals()
    assert totals == {("syscall", "count"): {"shop": 5, "mail": 1}, ("syscall", "ns"): {"shop": 17 * MS, "mail": MS}}


def test_services_and_columns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_totals, "MOST_SERVICES", 2)
    monkeypatch.setattr(kind_totals, "MOST_COLUMNS", 2)
    rows = [EventRow({"connects": 7, "accepts": 2, "bytes_out": 23}, service) for service in ("a", "b", "c", "d")]
    assert added(Window({"tcp": rows})).totals() == {
        ("tcp", "connects"): {"a": 7, "b": 7, OTHER: 14},
        ("tcp", "accepts"): {"a": 2, "b": 2, OTHER: 4},
    }
