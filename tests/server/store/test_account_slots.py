# SPDX-License-Identifier: Apache-2.0
"""A unit in several slots counts in each by its part; parts are whole and add up."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from server.store.account_slots import Span, losses_by_slot, merged_by_slot, spread_ticks, spread_unit
from server.store.segments import Losses, Segments, losses_of_rows, merged, segments_of_windows

S = 10**9
FULL, UNDER_A_MARK = 3, 101
DUE, STORED, IDLE, FILTERED = 1000, 703, 200, 50


def unit(*agents: int, start_s: int = 600, until_s: int = 1200) -> tuple[Segments, Losses]:
    """Agents with one stretch: of 1000 ticks 703 were stored, 30 lost, and 17 are not explained."""
    rows = [[agent, start_s * S, until_s * S, DUE, STORED, IDLE, FILTERED] for agent in agents]
    losses = [[agent, 600 * S, reason, value] for agent in agents for reason, value in ((FULL, 30), (UNDER_A_MARK, 7))]
    return merged([segments_of_windows(rows)]), losses_of_rows(losses)


def span_of(first_s: int, until_s: int, step_s: int) -> Span:
    return Span(1, first_s * S, until_s * S, step_s * S)


def test_parts_are_as_long_as_what_lies_in_the_slot() -> None:
    pieces, losses = spread_unit(span_of(540, 1260, 240), *unit(7, 9), 1200 * S)
    assert pieces.agent.tolist() == [7, 7, 7, 9, 9, 9]
    assert (pieces.start // S).tolist()[:3] == [600, 780, 1020] and (pieces.end // S).tolist()[:3] == [780, 1020, 1200]
    # 3, 4 and 3 tenths of 703 and of 30; of those lost one is rounded.
    assert pieces.stored.tolist()[:3] == [210, 282, 211]
    lost = losses_by_slot(span_of(540, 1260, 240), [losses])
    which = (lost.agent == 9) & (lost.reason == FULL)
    assert (lost.at[which] // S).tolist() == [540, 780, 1020]
    assert np.abs(lost.value[which] - [9, 12, 9]).max() <= 1 and lost.value[which].sum() == 30


def test_what_lies_outside_is_left_out_and_has_its_place_beside_it() -> None:
    inside = [spread_unit(span_of(*bounds, 60), *unit(7), 1200 * S) for bounds in ((0, 617), (617, 1001), (1001, 3000), (1200, 1300))]
    sums = [int(pieces.stored.sum()) for pieces, _ in inside]
    assert sum(sums) == STORED and sums[3] == 0
    assert abs(sums[0] - 703 * 17 / 600) < 1


def test_an_agent_that_came_late_is_not_spread_over_what_was_before_it() -> None:
    pieces, _ = spread_unit(span_of(600, 1200, 60), *unit(7, start_s=1100, until_s=1300), 1200 * S)
    assert (pieces.start // S).tolist() == [1100, 1140] and int(pieces.stored.sum()) == STORED


@settings(deadline=None)
@given(st.integers(0, 900), st.integers(1, 700), st.integers(600, 1150), st.integers(1, 600))
def test_parts_add_up_and_each_is_conserved(first_s: int, step_s: int, start_s: int, length_s: int) -> None:
    cuts = sorted({0, first_s, 2000})
    for_all = dict.fromkeys(("expected", "stored", "idle", "filtered"), 0)
    for bounds in pairwise(cuts):
        pieces, losses = spread_unit(span_of(*bounds, step_s), *unit(7, start_s=start_s, until_s=start_s + length_s), 1200 * S)
        out = np.zeros(pieces.agent.size, np.int64)
        np.add.at(out, np.searchsorted(pieces.start, losses.at), np.where(losses.reason == FULL, losses.value, 0))
        unexplained = pieces.expected - pieces.stored - pieces.idle - pieces.filtered - out
        assert unexplained.min(initial=0) >= 0
        for name in for_all:
            for_all[name] += int(getattr(pieces, name).sum())
    assert for_all == {"expected": DUE, "stored": STORED, "idle": IDLE, "filtered": FILTERED}


def test_windows_of_a_slot_are_one_stretch_with_its_gaps() -> None:
    rows = [[7, at * S, (at + 10) * S, 30, 30, 0, 0] for at in (0, 30, 60, 70)]
    found = merged_by_slot(span_of(0, 120, 60), segments_of_windows(rows))
    # 20 s at 3 ticks a second inside the first; what lies between the two slots is in none.
    assert (found.down.tolist(), found.expected.tolist(), (found.start // S).tolist()) == ([60, 0], [60, 60], [0, 60])


def test_a_gap_is_shared_by_its_slots() -> None:
    assert spread_ticks(10 * S, 40 * S, 91, span_of(0, 60, 20)) == {0: 30, 1: 61}
    assert spread_ticks(10 * S, 40 * S, 91, span_of(60, 90, 20)) == {}
