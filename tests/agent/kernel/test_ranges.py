# SPDX-License-Identifier: Apache-2.0
"""Ranges are handed out once, and what comes back is joined with its neighbours."""

import random

from agent.kernel.ranges import Ranges


def test_ranges_follow_each_other_and_end_with_the_array() -> None:
    ranges = Ranges(30)
    assert (ranges.take(7), ranges.take(23), ranges.take(1)) == (0, 7, None)
    assert ranges.free_elements == 0


def test_neighbours_are_joined_again() -> None:
    ranges = Ranges(30)
    starts = [ranges.take(10) for _ in range(3)]
    for start in (0, 20, 10):
        assert start in starts
        ranges.give_back(start, 10)
    assert ranges.take(30) == 0


def test_a_hole_is_used_by_what_fits() -> None:
    ranges = Ranges(30)
    ranges.take(7), ranges.take(3), ranges.take(13)
    ranges.give_back(7, 3)
    assert (ranges.has_room(8), ranges.has_room(7), ranges.free_elements) == (False, True, 10)
    assert ranges.take(5) == 23
    assert ranges.take(3) == 7


def test_nothing_takes_nothing() -> None:
    ranges = Ranges(3)
    assert ranges.take(0) == 0
    ranges.give_back(0, 0)
    assert ranges.free_elements == 3


def test_no_element_is_handed_out_twice_or_lost() -> None:
    draw = random.Random(7)
    ranges, owned = Ranges(997), {}
    for _ in range(5000):
        if owned and draw.random() < 0.5:
            start = draw.choice(list(owned))
            ranges.give_back(start, owned.pop(start))
            continue
        count = draw.randint(1, 97)
        start = ranges.take(count)
        if start is not None:
            assert all(start + count <= other or other + length <= start for other, length in owned.items())
            owned[start] = count
        assert ranges.free_elements == 997 - sum(owned.values())
    for start, count in owned.items():
        ranges.give_back(start, count)
    assert ranges.take(997) == 0
