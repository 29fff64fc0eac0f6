# SPDX-License-Identifier: Apache-2.0
"""Stretches of time: what joining them in steps comes to is what all windows at once come to."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from server.store.segments import (
    GAP_NS,
    Gap,
    Losses,
    Segments,
    gaps,
    joined,
    losses_of_rows,
    merged,
    merged_losses,
    segments_bytes,
    segments_from_bytes,
    segments_of_windows,
)

SECOND = 10**9


def window(agent: int, start_s: int, expected: int, length_s: int = 10) -> list[int]:
    return [agent, start_s * SECOND, (start_s + length_s) * SECOND, expected, expected - 3, 2, 1]


def columns(segments: Segments) -> list[list[int]]:
    return [getattr(segments, name).tolist() for name in ("agent", "start", "end", "expected", "stored", "idle", "filtered", "down")]


def test_a_gap_counts_at_the_rate_of_the_window_before_it() -> None:
    one = merged([segments_of_windows([window(7, 0, 30), window(7, 40, 7), window(9, 10, 23)])])
    # 30 s at 3 ticks a second.
    expected = [[7, 9], [0, 10 * SECOND], [50 * SECOND, 20 * SECOND], [37, 23], [31, 20], [4, 2], [2, 1], [90, 0]]
    assert columns(one) == expected
    assert (one.last_start.tolist(), one.last_expected.tolist()) == ([40 * SECOND, 10 * SECOND], [7, 23])


def test_windows_that_meet_or_overlap_leave_no_gap() -> None:
    rows = [window(7, 0, 30), window(7, 10, 30), window(7, 15, 30)]
    rows.append([7, 25 * SECOND + GAP_NS, 35 * SECOND, 30, 30, 0, 0])
    assert list(gaps(joined([segments_of_windows(rows)]))) == []


def test_a_gap_of_a_year_at_a_million_ticks_a_window_is_exact() -> None:
    rows = [window(7, 0, 1_000_003), window(7, 31_536_000, 1)]
    assert list(gaps(joined([segments_of_windows(rows)]))) == [Gap(7, 10 * SECOND, 31_536_000 * SECOND, 1_000_003 * 31_535_990 // 10)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 120), st.integers(3, 1000)), max_size=40), st.integers(1, 6))
def test_in_steps_is_as_at_once(drawn: list[tuple[int, int, int]], unit: int) -> None:
    rows = sorted((window(agent, 10 * at, expected) for agent, at, expected in drawn), key=lambda row: row[1])
    at_once = merged([segments_of_windows(rows)])
    units: dict[int, list[list[int]]] = {}
    for row in rows:
        units.setdefault(row[1] // (unit * 10 * SECOND), []).append(row)
    stored = [segments_bytes(merged([segments_of_windows(some)]), losses_of_rows([]), 0) for some in units.values()]
    in_steps = merged([segments_from_bytes(blob, 0)[0] for blob in stored])
    assert columns(in_steps) == columns(at_once)


def test_bytes_keep_times_and_losses() -> None:
    origin = 1_700_000_000 * SECOND
    rows = [[agent, origin + start, origin + end, *rest] for agent, start, end, *rest in (window(7, 0, 30), window(9, 590, 23))]
    losses = Losses(np.array([7, 7, 9]), np.array([origin, origin + 5, origin]), np.array([3, 3, 101]), np.array([2, 5, 1 << 40]))
    segments = merged([segments_of_windows(rows)])
    again, lost = segments_from_bytes(segments_bytes(segments, merged_losses([losses], origin), origin), origin)
    assert columns(again) == columns(segments) and again.last_start.tolist() == segments.last_start.tolist()
    assert [lost.agent.tolist(), lost.at.tolist(), lost.reason.tolist(), lost.value.tolist()] == [
        [7, 9], [origin, origin], [3, 101], [7, 1 << 40],
    ]  # fmt: skip


def test_nothing_is_nothing() -> None:
    nothing = merged([])
    assert nothing.agent.size == 0 and list(gaps(nothing)) == []
    assert segments_from_bytes(segments_bytes(nothing, merged_losses([], 0), 0), 0)[0].agent.size == 0
