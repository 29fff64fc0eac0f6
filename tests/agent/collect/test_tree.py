# SPDX-License-Identifier: Apache-2.0
"""The prefix tree says every stack exactly, shares every common caller, and stands in preorder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.collect import tree as tree_module
from agent.collect.tree import Tree, tree_from_stacks


def _tree(stacks: list[list[int]]) -> Tree:
    flat = np.array([frame for stack in stacks for frame in stack], np.int64)
    return tree_from_stacks(flat, np.cumsum([0, *(len(stack) for stack in stacks)]))


def _stack(tree: Tree, leaf: int) -> list[int]:
    stack, node = [], leaf
    while node:
        stack.append(int(tree.frames[node]))
        assert tree.parents[node] < node
        node = int(tree.parents[node])
    return stack


def _check(stacks: list[list[int]]) -> Tree:
    tree = _tree(stacks)
    assert [_stack(tree, leaf) for leaf in tree.leaves.tolist()] == stacks
    prefixes = {tuple(stack[-depth:]) for stack in stacks for depth in range(1, len(stack) + 1)}
    assert len(tree.frames) == len(prefixes) + 1
    return tree


def test_common_callers_are_one_node() -> None:
    tree = _check([[3, 2, 1], [4, 2, 1], [5, 1]])
    assert tree.parents.tolist() == [0, 0, 1, 2, 2, 1]
    assert tree.frames.tolist() == [0, 1, 2, 3, 4, 5]
    assert tree.leaves.tolist() == [3, 4, 5]


def test_stack_that_is_the_caller_of_another_is_its_inner_node() -> None:
    assert _check([[2, 1], [3, 2, 1]]).leaves.tolist() == [2, 3]


def test_recursion_and_equal_stacks() -> None:
    tree = _check([[1, 1, 1], [1, 1], [1, 1, 1]])
    assert tree.leaves.tolist() == [3, 2, 3]


def test_no_stacks_is_the_empty_stack() -> None:
    tree = _tree([])
    assert (tree.parents.tolist(), tree.frames.tolist(), tree.leaves.tolist()) == ([0], [0], [])


@settings(max_examples=80, deadline=None)
@given(stacks=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=9), min_size=1, max_size=40), cells=st.integers(1, 40))
def test_any_stacks_in_any_pieces(stacks: list[list[int]], cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_module, "_CELLS", cells)
        _check(stacks)
