# SPDX-License-Identifier: Apache-2.0
"""Stacks leaf first become trees root first."""

import numpy as np

from server.profile.calltree import depths_of, frames_root_first, levels, with_ancestors

# 0 - 1 - 2 - 5
#       \ 4
#   \ 3
PARENTS = np.array([0, 0, 1, 0, 1, 2], np.intp)
ROOT_DEPTH = np.zeros(1, np.intp)


def test_depths_count_frames() -> None:
    assert depths_of(PARENTS, ROOT_DEPTH).tolist() == [0, 1, 2, 1, 2, 3]


def test_depths_go_on_from_those_known() -> None:
    assert depths_of(PARENTS, np.array([0, 1, 2, 1], np.intp)).tolist() == [0, 1, 2, 1, 2, 3]


def test_levels_come_outermost_first() -> None:
    assert [level.tolist() for level in levels(depths_of(PARENTS, ROOT_DEPTH), 1)] == [[1, 3], [2, 4], [5]]


def test_levels_of_nothing_are_none() -> None:
    assert list(levels(ROOT_DEPTH, 1)) == []


def test_a_stack_is_read_root_first() -> None:
    frames = np.array([0, 11, 13, 17, 19, 23])
    assert frames_root_first(PARENTS, frames, 5) == [11, 13, 23]
    assert frames_root_first(PARENTS, frames, 0) == []


def test_a_stack_of_100000_frames_has_a_depth() -> None:
    chain = np.maximum(np.arange(100_001) - 1, 0)
    assert depths_of(chain, ROOT_DEPTH)[-1] == 100_000


def test_nodes_and_all_above_them_once_each() -> None:
    parents = np.array([0, 0, 1, 2, 0, 4, 2])
    assert with_ancestors(np.array([6, 3, 6]), parents).tolist() == [0, 1, 2, 3, 6]
    assert with_ancestors(np.zeros(0, np.intp), parents).tolist() == [0]
