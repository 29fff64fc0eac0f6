# SPDX-License-Identifier: Apache-2.0
"""Self and total of functions from the inverted index are those of a plain count over stacks: recursion, inlined calls, several frames
of a function, keys beyond those asked for, segments of any size."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile.stack_index import Stacks, StackSegment, stack_segment
from server.profile.stack_values import HeldStacks, meant_frames

NAMES = 5
PARTS = ((1,), (1,), (2,), (3, 1), (2, 3, 2), (4,), (1, 1))
"""Names of frames 1, 2, ...; frame 0 is the empty one, named 0."""


@dataclass(frozen=True)
class Case:
    """Root-first stacks of the keys with their values, cuts between segments, and how many keys are asked for."""

    keys: list[tuple[list[int], int]]
    cuts: list[int]
    asked: int
    is_meant: list[bool]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    stack = st.lists(st.integers(1, len(PARTS)), max_size=6)
    keys = draw(st.lists(st.tuples(stack, st.integers(0, 2**40)), min_size=1, max_size=25))
    cuts = draw(st.lists(st.integers(1, len(keys)), max_size=3, unique=True))
    asked = draw(st.integers(1, len(keys)))
    return Case(keys, sorted({*cuts, len(keys)}), asked, [False, *draw(st.lists(st.booleans(), min_size=NAMES, max_size=NAMES))])


def segments_of(case: Case) -> list[StackSegment]:
    """One after another, each made when the keys after it were not there yet."""
    nodes, rows, ends, made, first = {(0, 0): 0}, [(0, 0)], list[int](), list[StackSegment](), 0
    for number, (stack, _) in enumerate(case.keys, 1):
        node = 0
        for frame in stack:
            row = (node, frame)
            if row not in nodes:
                nodes[row] = len(rows)
                rows.append(row)
            node = nodes[row]
        ends.append(node)
        if number in case.cuts:
            parents, frames = np.array(rows, np.uint32).T.copy()
            made.append(stack_segment(Stacks(parents, frames, np.array(ends, np.uint32)), first))
            first = number
    return made


def names_on(stack: Sequence[int]) -> list[int]:
    return [name for frame in stack for name in PARTS[frame - 1]]


@given(cases())
@settings(max_examples=120, deadline=None)
def test_sums_are_those_of_a_plain_count(case: Case) -> None:
    bounds = np.cumsum([0, 1, *[len(parts) for parts in PARTS]])
    names = np.array([0, *[name for parts in PARTS for name in parts]])
    held = HeldStacks(segments_of(case), meant_frames(np.array(case.is_meant), bounds, names), case.asked)
    meant = {name for name in range(NAMES + 1) if case.is_meant[name]}
    asked = case.keys[: case.asked]
    assert held.mask().tolist() == [bool(meant & set(names_on(stack))) for stack, _ in asked]
    sums = held.sums(np.array([value for _, value in asked], np.uint64))
    found = {name: (own, total) for name, own, total in zip(sums.name.tolist(), sums.own.tolist(), sums.total.tolist(), strict=True)}
    expected = {
        name: (
            sum(value for stack, value in asked if names_on(stack)[-1:] == [name]),
            sum(value for stack, value in asked if name in names_on(stack)),
        )
        for name in meant
    }
    assert found == {name: values for name, values in expected.items() if values[1]}


def test_a_range_that_begins_with_its_inner_one_counts_once() -> None:
    # f -> f' -> g and f -> f' : two frames of one function begin at one place, the outer holds more.
    case = Case([([2, 1], 7), ([2], 23)], [2], 2, [False, True, False, False, False, False])
    bounds, names = np.arange(4), np.array([0, 1, 1])
    sums = HeldStacks(segments_of(case), meant_frames(np.array(case.is_meant), bounds, names), 2).sums(np.array([7, 23], np.uint64))
    assert (sums.name.tolist(), sums.own.tolist(), sums.total.tolist()) == ([1], [30], [30])


def test_values_beyond_a_float_are_exact() -> None:
    case = Case([([1], 2**60 + 1), ([1, 3], 2**60 + 3)], [2], 2, [False, True, False, False, False, False])
    bounds, names = np.arange(5), np.array([0, 1, 2, 3])
    sums = HeldStacks(segments_of(case), meant_frames(np.array(case.is_meant), bounds, names), 2)
    assert sums.sums(np.array([2**60 + 1, 2**60 + 3], np.uint64)).total.tolist() == [2**61 + 4]
