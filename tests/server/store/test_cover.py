# SPDX-License-Identifier: Apache-2.0
"""Covers: every minute of a range once, in the longest blocks that are ready and lie in one slot."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from server.store.cover import LENGTHS_S, MINUTE_NS, SECOND_NS, Wanted, cover, runs

DAY_NS = 86_400 * SECOND_NS
START = 20_000 * DAY_NS
minutes_in = st.integers(0, 4 * 1440)


def wanted_of(first: int, last: int, slot_ns: int = 0, longest_ns: int = 0) -> Wanted:
    """From minute to minute, counted from START."""
    span = START + first * MINUTE_NS, START + last * MINUTE_NS
    return Wanted(*span, span, (span[0], slot_ns) if slot_ns else None, longest_ns)


def taken_minutes(wanted: Wanted, unready: dict[int, np.ndarray]) -> np.ndarray:
    found = cover(wanted, unready)
    parts = [found.minutes]
    for length_s, starts in found.rollups.items():
        parts.append((starts[:, None] + np.arange(0, length_s * SECOND_NS, MINUTE_NS)).ravel())
        assert not np.isin(starts, unready.get(length_s, [])).any()
        assert not (starts % (length_s * SECOND_NS)).any()
        if wanted.slots:
            first, slot_ns = wanted.slots
            assert ((starts - first) // slot_ns == (starts + length_s * SECOND_NS - 1 - first) // slot_ns).all()
    return np.sort(np.concatenate(parts))


@given(minutes_in, minutes_in, st.sets(st.integers(0, 4 * 144), max_size=8), st.sampled_from([0, 600, 2520, 3600, 10_000, 86_400]))
def test_every_minute_is_taken_once(one: int, other: int, tens: set[int], slot_s: int) -> None:
    first, last = min(one, other), max(one, other)
    starts = np.array(sorted(START + ten * 600 * SECOND_NS for ten in tens), np.int64)
    unready = {length_s: np.unique(starts // (length_s * SECOND_NS) * (length_s * SECOND_NS)) for length_s in LENGTHS_S}
    taken = taken_minutes(wanted_of(first, last, slot_s * SECOND_NS), unready)
    assert taken.tolist() == list(range(START + first * MINUTE_NS, START + last * MINUTE_NS, MINUTE_NS))


def test_a_week_is_days_with_shorter_blocks_at_its_edges() -> None:
    found = cover(wanted_of(30, 7 * 1440 + 30), {})
    assert [found.rollups[length_s].size for length_s in LENGTHS_S] == [6, 23, 3 + 3]
    assert not found.minutes.size


def test_a_day_that_is_not_ready_is_taken_in_hours() -> None:
    found = cover(wanted_of(0, 2 * 1440), {86_400: np.array([START + DAY_NS])})
    assert [found.rollups[length_s].size for length_s in LENGTHS_S] == [1, 24, 0]


def test_no_block_is_longer_than_asked_for() -> None:
    found = cover(wanted_of(0, 1440, longest_ns=3600 * SECOND_NS), {})
    assert [found.rollups[length_s].size for length_s in LENGTHS_S] == [0, 24, 0]


def test_starts_that_follow_one_another_are_one_run() -> None:
    assert runs(np.array([0, 60, 120, 300]), 60) == [(0, 180), (300, 360)]
    assert runs(np.zeros(0, np.int64), 60) == []
