# SPDX-License-Identifier: Apache-2.0
"""Ranges are cut into slots of round lengths."""

import pytest

from server.query.complaint import QueryError
from server.query.slots import Slots, choose_slots
from server.query.timerange import TimeRange

S = 10**9


def test_the_shortest_round_step_that_fits_is_taken() -> None:
    assert choose_slots(TimeRange(0, 900 * S), None, 60).step_ns == 20 * S
    assert choose_slots(TimeRange(0, 900 * S), None).step_ns == 10 * S
    assert choose_slots(TimeRange(0, 86_400 * S), None, 60).step_ns == 1800 * S


def test_long_slots_start_at_whole_ten_minutes() -> None:
    slots = choose_slots(TimeRange(86_400 * S - 137 * S, 2 * 86_400 * S - 137 * S), None)
    assert (slots.range.from_unix_ns, slots.step_ns, slots.count) == (86_400 * S - 600 * S, 600 * S, 145)
    full = TimeRange(137 * S, 137 * S + 240 * 600 * S)  # One slot more than fits, by where it starts.
    assert choose_slots(full, None).step_ns == 900 * S
    assert choose_slots(TimeRange(137 * S, 36_000 * S + 137 * S), None).range.from_unix_ns == 137 * S


def test_a_step_over_a_long_range_is_whole_ten_minutes() -> None:
    short, long = TimeRange(137 * S, 43_337 * S), TimeRange(137 * S, 43_338 * S)
    assert choose_slots(short, 61 * S) == Slots(short, 61 * S)
    assert choose_slots(long, 61 * S) == Slots(TimeRange(0, 43_338 * S), 600 * S)
    assert choose_slots(long, 1201 * S).step_ns == 1800 * S
    assert choose_slots(long, 1200 * S).step_ns == 1200 * S


def test_a_range_of_years_has_steps_of_whole_days() -> None:
    slots = choose_slots(TimeRange(137 * S, 1830 * 86_400 * S), None)
    assert (slots.step_ns, slots.count) == (8 * 86_400 * S, 229)


def test_the_last_slot_is_cut() -> None:
    slots = choose_slots(TimeRange(100 * S, 125 * S), 10 * S)
    assert slots.starts_s() == [100.0, 110.0, 120.0]
    assert slots.lengths_ns() == [10 * S, 10 * S, 5 * S]


@pytest.mark.parametrize("step_ns", [0, S // 2, 10**6])
def test_a_step_can_be_too_short(step_ns: int) -> None:
    with pytest.raises(QueryError, match="the step is shorter than 1 s"):
        choose_slots(TimeRange(0, 10 * S), step_ns)


def test_there_can_be_too_many() -> None:
    assert choose_slots(TimeRange(0, 2000 * S), S).count == 2000
    with pytest.raises(QueryError, match="the range makes more than 2000 steps"):
        choose_slots(TimeRange(0, 2001 * S), S)
