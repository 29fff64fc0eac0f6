# SPDX-License-Identifier: Apache-2.0
"""What was due follows from the clock. Period 100, opened at 1000: ticks are due at 1100, 1200, … plus what the first was late."""

from agent.profilers.ticks import TICK_COUNTS, SeenTicks, TickClock

NOTHING = SeenTicks(0, 0, 0)


def clock() -> TickClock:
    return TickClock(opened_ns=1000, period_ns=100)


def test_every_tick_on_time_is_due_and_seen() -> None:
    ticking = clock()
    assert ticking.due(SeenTicks(1103, 1703, 7), 1750) == 7
    assert ticking.due(SeenTicks(1801, 2301, 6), 2350) == 6


def test_ticks_the_timer_missed_are_due() -> None:
    # Seen at 1100, 1200, then again at 1600: 1300, 1400 and 1500 were missed.
    assert clock().due(SeenTicks(1100, 1600, 3), 1650) == 6


def test_ticks_missed_before_the_first_are_due() -> None:
    assert clock().due(SeenTicks(1402, 1502, 2), 1550) == 5


def test_tick_just_due_belongs_to_the_next_window() -> None:
    ticking = clock()
    assert ticking.due(SeenTicks(1100, 1300, 3), 1401) == 3
    assert ticking.due(SeenTicks(1405, 1605, 3), 1650) == 3


def test_silence_is_due_but_for_the_last_period() -> None:
    ticking = clock()
    assert ticking.due(SeenTicks(1100, 1200, 2), 1250) == 2
    assert ticking.due(NOTHING, 1950) == 6  # 1300 to 1800; 1900 may still arrive
    assert ticking.due(SeenTicks(1905, 2105, 3), 2150) == 3


def test_timer_that_never_ticks_is_due_from_its_opening() -> None:
    assert clock().due(NOTHING, 2050) == 9


def test_late_first_tick_does_not_lose_the_others() -> None:
    ticking = clock()
    # The first is 30 late, the others are on time: they look 30 early on the grid it sets.
    assert ticking.due(SeenTicks(1130, 1700, 7), 1750) == 7
    assert ticking.due(SeenTicks(1800, 2300, 6), 2350) == 6


def test_no_window_is_due_less_than_it_saw_and_the_sum_is_one_off_at_most() -> None:
    ticking = clock()
    # The last tick of the first window came so late (90) that it falls on the next one's place.
    windows = [(SeenTicks(1100, 1790, 7), 1795), (SeenTicks(1800, 2300, 6), 2350), (SeenTicks(2400, 2800, 5), 2850)]
    due = [ticking.due(seen, now) for seen, now in windows]
    assert all(number >= seen.number for number, (seen, _) in zip(due, windows, strict=True))
    assert 18 <= sum(due) <= 19


def test_grid_holds_over_a_long_time() -> None:
    ticking = TickClock(0, 10_101_010)  # 99 Hz
    total = 0
    for window in range(1, 1001):
        first, last = (window - 1) * 990 + 1, window * 990
        total += ticking.due(SeenTicks(first * 10_101_010 + 2500, last * 10_101_010 + 900, 990), last * 10_101_010 + 1_000_000)
    assert total == 990_000


def test_silence_is_counted_from_the_last_tick() -> None:
    ticking = clock()
    assert ticking.silent_ns(NOTHING, 1700) == 700
    ticking.due(SeenTicks(1100, 1500, 5), 1550)
    assert ticking.silent_ns(NOTHING, 1700) == 200
    assert ticking.silent_ns(SeenTicks(1600, 1690, 1), 1700) == 10


def test_counters_are_nine_words() -> None:
    assert TICK_COUNTS.itemsize == 9 * 8
