# SPDX-License-Identifier: Apache-2.0
"""Operators on trees do to every stack what they would do to a list of frames, and lose no value that they do not say they drop."""

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile.calltree import Indices
from server.profile.join import Branch, join
from server.profile.nametree import NameTree
from server.profile.reshape import (
    DROPPED,
    Renaming,
    Reshaped,
    callees,
    callers,
    renamed,
    turned,
    unchanged,
    with_frame,
    without_frame,
)
from server.profile.totals import Mask, WeighedTree
from tests.server.profile.trees import Row, rows_of, totals_of, weighed

Stack = tuple[str, ...]
ROWS = st.lists(st.tuples(st.lists(st.sampled_from("abcd"), max_size=6), st.integers(1, 1000)), max_size=20)
LABELS = st.sampled_from([None, "w", "io"])


def used(tree: WeighedTree) -> Mask:
    mask: Mask = tree.own > 0
    return mask


def named(tree: NameTree, names: Sequence[str]) -> Mask:
    return np.isin(np.array(tree.table.names, object), list(names)) & (np.array(tree.table.sorts) == 0)


def expected(branches: Sequence[tuple[str | None, list[Row]]], change: Callable[[Stack], Stack | None]) -> dict[Stack, int]:
    """Do it to each stack as a list, below its label."""
    found: dict[Stack, int] = {}
    for label, rows in branches:
        for frames, value in rows:
            changed = change(tuple(frames))
            if changed is not None:
                path = (label, *changed) if label is not None else changed
                found[path] = found.get(path, 0) + value
    return found


def tree_of(branches: Sequence[tuple[str | None, list[Row]]]) -> WeighedTree:
    return join([Branch(weighed(rows), label) for label, rows in branches])


def after(tree: WeighedTree, operator: Reshaped) -> dict[Stack, int]:
    return rows_of(operator.weighed(tree.own))


def first_of(frames: Stack, wanted: Sequence[str]) -> int:
    return next((i for i, name in enumerate(frames) if name in wanted), -1)


def collapsed(frames: Sequence[str]) -> Stack:
    return tuple(name for i, name in enumerate(frames) if not i or frames[i - 1] != name)


def renaming(tree: NameTree, new: dict[str, int], is_collapsed: bool = False) -> Renaming:
    """Numbers of names, by old name; others stay."""
    numbers: Indices = np.arange(len(tree.table))
    for name, number in new.items():
        numbers[named(tree, [name])] = number
    return Renaming(tree.table, numbers, is_collapsed)


@given(LABELS, ROWS, ROWS, st.sets(st.sampled_from("abcd"), max_size=2))
@settings(deadline=None, max_examples=120)
def test_operators_do_what_they_do_to_lists_of_frames(label: str | None, one: list[Row], other: list[Row], wanted: set[str]) -> None:
    branches, names = [(None, one), (label, other)], sorted(wanted)
    tree = tree_of(branches)
    mask = named(tree.tree, names)

    def has(frames: Stack) -> bool:
        return first_of(frames, names) >= 0

    assert after(tree, unchanged(tree.tree)) == expected(branches, lambda frames: frames)
    assert after(tree, with_frame(tree.tree, mask)) == expected(branches, lambda frames: frames if has(frames) else None)
    assert after(tree, without_frame(tree.tree, mask)) == expected(branches, lambda frames: None if has(frames) else frames)
    assert after(tree, callees(tree.tree, mask, used(tree))) == expected(
        branches, lambda frames: frames[first_of(frames, names) :] if has(frames) else None
    )
    assert after(tree, callers(tree.tree, mask, used(tree))) == expected(
        branches, lambda frames: frames[: first_of(frames, names) + 1][::-1] if has(frames) else None
    )
    assert after(tree, turned(tree.tree, used(tree))) == expected(branches, lambda frames: frames[::-1])


@given(LABELS, ROWS, ROWS)
@settings(deadline=None, max_examples=120)
def test_frames_are_left_out_and_folded_as_in_lists(label: str | None, one: list[Row], other: list[Row]) -> None:
    branches = [(None, one), (label, other)]
    tree = tree_of(branches)

    def renamed_to(new: dict[str, int], is_collapsed: bool = False) -> dict[Stack, int]:
        return after(tree, renamed(tree.tree, renaming(tree.tree, new, is_collapsed), used(tree)))

    without = expected(branches, lambda frames: tuple(name for name in frames if name != "b"))
    assert renamed_to({"b": DROPPED}) == without
    assert renamed_to({}, is_collapsed=True) == expected(branches, collapsed)
    both = expected(branches, lambda frames: collapsed([name for name in frames if name != "b"]))
    assert renamed_to({"b": DROPPED}, is_collapsed=True) == both


def test_operators_follow_one_another() -> None:
    tree = weighed([(["main", "f", "g", "k"], 7), (["main", "g"], 23), (["x", "g", "g"], 2), (["x"], 5)])
    first = without_frame(tree.tree, named(tree.tree, ["x"]))
    second = callees(first.tree, named(first.tree, ["g"]), used(tree))
    both = first.then(second)
    assert rows_of(both.weighed(tree.own)) == {("g", "k"): 7, ("g",): 23}
    last = turned(both.tree, both.weighed(tree.own).own > 0)
    assert rows_of(both.then(last).weighed(tree.own)) == {("k", "g"): 7, ("g",): 23}


def test_turned_starts_with_the_leaf() -> None:
    tree = weighed([(["main", "f", "g"], 7), (["main", "g"], 23), (["g", "g"], 2), ([], 3)])
    inverted = turned(tree.tree, used(tree)).weighed(tree.own)
    assert rows_of(inverted) == {("g", "f", "main"): 7, ("g", "main"): 23, ("g", "g"): 2, (): 3}
    assert totals_of(inverted)["g",] == 32


def test_a_deep_recursion_collapses_to_one_frame() -> None:
    tree = weighed([(["f"] * 3000, 7), (["f"] * 2000 + ["g"], 2)])
    collapsing = renamed(tree.tree, Renaming(tree.tree.table, np.arange(len(tree.tree.table)), True), used(tree))
    assert rows_of(collapsing.weighed(tree.own)) == {("f",): 7, ("f", "g"): 2}
