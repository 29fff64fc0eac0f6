# SPDX-License-Identifier: Apache-2.0
"""Shifts of shares: found in time, once, and not where shares only wander as they do: over-dispersed, autocorrelated, by the hour."""

from dataclasses import dataclass

import numpy as np

from server.profile.shift import BEFORE, LAST, LEAST_SHIFT, SLOT_S, ShiftWatch

HOUR = 3600 // SLOT_S
DAY = 24 * HOUR
GROUPS = 4


@dataclass(frozen=True)
class Drawn:
    """Services of 20 hosts in 4 groups, 8 functions each; a host has about 0.35 cores of CPU at 99 Hz."""

    services: int = 100
    functions: int = 8
    seed: int = 1
    wander: float = 0.03
    """Relative, with a correlation time of half an hour; half as much again over 6 hours."""
    daily: float = 0.2
    hosts: float = 0.25
    """Relative, of one host in one slot: far more than counting."""
    samples: float = 20_000.0
    """A group and slot."""


def alarms(drawn: Drawn, slots: int, planted_at: int | None = None) -> list[tuple[int, int]]:
    """(slot, row) of each alarm; from a slot on the last function of each service has 1 % of its service more."""
    random = np.random.default_rng(drawn.seed)
    functions, rows = drawn.functions, drawn.services * drawn.functions
    usual = np.tile(1 / np.arange(1, functions + 1), drawn.services)
    usual /= usual[:functions].sum()
    phase, size = random.uniform(0, 2 * np.pi, rows), random.uniform(0, drawn.daily, rows)
    load = random.uniform(0, 2 * np.pi, (drawn.services, 1))
    spread = drawn.hosts / (20 / GROUPS) ** 0.5
    scales = ((0.5 * 3600, drawn.wander), (6 * 3600.0, 1.5 * drawn.wander))
    wander = [random.normal(0, sigma, rows) for _, sigma in scales]
    first = np.arange(0, rows, functions)
    watch, found = ShiftWatch(rows, GROUPS), []
    for slot in range(slots):
        for at, (time_s, sigma) in enumerate(scales):
            keep = np.exp(-SLOT_S / time_s)
            wander[at] = keep * wander[at] + (1 - keep * keep) ** 0.5 * sigma * random.standard_normal(rows)
        hour = 2 * np.pi * slot / DAY
        mean = usual * np.exp(wander[0] + wander[1]) * (1 + size * np.sin(hour + phase))
        if planted_at is not None and slot >= planted_at:
            mean[functions - 1 :: functions] += 0.01
        busy = drawn.samples * (1 + 0.5 * np.sin(hour + load))
        due = (mean.reshape(-1, functions) * busy).reshape(rows, 1) * np.exp(spread * random.standard_normal((rows, GROUPS)))
        values = np.maximum(0, np.rint(due + np.sqrt(due) * random.standard_normal(due.shape)))
        whole = np.repeat(np.add.reduceat(values, first, axis=0), functions, axis=0)
        found += [(slot, row) for row in watch.add(values, whole).rows.tolist()]
    return found


def test_a_week_of_100_services_without_a_change_gives_at_most_one_alarm() -> None:
    assert len(alarms(Drawn(), 7 * DAY)) <= 1


def test_one_percent_of_a_service_more_is_found_within_15_minutes() -> None:
    planted = 2 * DAY + 7
    drawn = Drawn(services=30, functions=12, seed=2)
    found = alarms(drawn, planted + 3 * HOUR, planted)
    right = {row: slot for slot, row in reversed(found) if slot >= planted and row % drawn.functions == drawn.functions - 1}
    assert len(found) == len(right)  # nothing else, and each once
    # The slot it was planted in is the first of those that count; it is over SLOT_S later.
    in_time = [slot for slot in right.values() if (slot + 1 - planted) * SLOT_S <= 900]
    assert len(in_time) >= 27, sorted(right.values())


def steady(rows: int = 3, slots: int = DAY) -> ShiftWatch:
    """Row 0 has 10 %, row 1 20 %, row 2 nothing."""
    watch, random = ShiftWatch(rows, GROUPS), np.random.default_rng(5)
    for _ in range(slots):
        values = np.outer([1000, 2000, 0], np.ones(GROUPS)) + random.normal(0, 10, (rows, GROUPS)) * [[1], [1], [0]]
        assert watch.add(np.rint(values), np.full(GROUPS, 10_000.0)).rows.size == 0
    return watch


def test_a_shift_is_told_once_with_both_shares() -> None:
    watch, whole = steady(), np.full(GROUPS, 10_000.0)
    after = [watch.add(np.outer([1000, 2000, 100], np.ones(GROUPS)), whole) for _ in range(LAST + BEFORE)]
    (told,) = [found for found in after if found.rows.size]
    assert told.rows.tolist() == [2] and told.before[0] == 0.0
    assert LEAST_SHIFT <= told.after[0] <= 0.01 and 0 < told.error[0] < told.after[0]


def test_one_host_alone_is_no_shift_of_the_service() -> None:
    watch, whole = steady(), np.full(GROUPS, 10_000.0)
    for _ in range(LAST + BEFORE):
        values = np.outer([1000, 2000, 0], np.ones(GROUPS))
        values[2, 0] = 400  # one group has all of it: 1 % of the service
        assert watch.add(values, whole).rows.size == 0


def test_a_burst_is_no_shift() -> None:
    watch, whole = steady(), np.full(GROUPS, 10_000.0)
    for slot in range(LAST + BEFORE):
        values = np.outer([1000, 2000, 600 if slot == 0 else 0], np.ones(GROUPS))
        assert watch.add(values, whole).rows.size == 0


def test_what_happens_every_day_at_that_time_is_usual() -> None:
    watch, whole = ShiftWatch(1, GROUPS), np.full(GROUPS, 10_000.0)
    told = []
    for slot in range(3 * DAY):
        is_nightly = 3 * HOUR <= slot % DAY < 4 * HOUR
        if watch.add(np.full((1, GROUPS), 500.0 if is_nightly else 200.0), whole).rows.size:
            told.append(slot // DAY)
    assert set(told) <= {0}


def test_before_it_is_known_what_is_usual_nothing_is_told() -> None:
    watch, whole = ShiftWatch(1, GROUPS), np.full(GROUPS, 10_000.0)
    for slot in range(2 * HOUR):
        assert watch.add(np.full((1, GROUPS), 900.0 if slot > HOUR else 100.0), whole).rows.size == 0


def test_a_row_that_stands_for_something_else_begins_at_nothing() -> None:
    watch, whole = steady(), np.full(GROUPS, 10_000.0)
    watch.clear(0)
    values = np.outer([0, 2000, 0], np.ones(GROUPS))
    assert all(watch.add(values, whole).rows.size == 0 for _ in range(LAST + BEFORE))
    assert watch.size_bytes < 100_000


def test_a_pause_without_data_is_no_change() -> None:
    watch = steady()
    for slot in range(3 * HOUR):
        is_there = slot >= HOUR
        values = np.outer([1000, 2000, 0], np.full(GROUPS, float(is_there)))
        assert watch.add(values, np.full(GROUPS, 10_000.0 * is_there)).rows.size == 0
