# SPDX-License-Identifier: Apache-2.0
"""Totals are exact and conserve what was put in."""

import numpy as np

from server.profile.nametable import NameTable, PathFlag
from server.profile.totals import outermost, value_of_leaves, value_with_flags, weigh
from tests.server.profile.trees import totals_of, weighed

ROWS = [(["main", "parse"], 7), (["main", "parse", "read"], 23), (["main"], 2), (["idle"], 11)]


def test_totals_hold_all_below() -> None:
    assert totals_of(weighed(ROWS)) == {
        (): 43,
        ("idle",): 11,
        ("main",): 32,
        ("main", "parse"): 30,
        ("main", "parse", "read"): 23,
    }


def test_nothing_sums_to_nothing() -> None:
    tree = weighed([])
    assert tree.sum == 0
    assert tree.total.tolist() == [0]


def test_sums_beyond_2_to_the_53_are_exact() -> None:
    tree = weighed([(["a"], 1)]).tree
    big = float(2**53 - 1)
    result = weigh(tree, np.array([1, 1, 1]), np.array([big, big, 3.0]))
    assert result.sum == 2 * (2**53 - 1) + 3


def test_flagged_stacks_are_added_up() -> None:
    table = NameTable()
    weighed([(["cut"], 1)], table)
    table.flag(np.array([1]), np.array([PathFlag.TRUNCATED], np.uint8))
    tree = weighed([(["cut", "a"], 7), (["cut", "b", "c"], 23), (["a"], 2)], table)
    assert value_with_flags(tree, PathFlag.TRUNCATED) == 30
    assert value_with_flags(tree, PathFlag.STACK_LOST) == 0


def test_leaves_are_added_up_by_name() -> None:
    tree = weighed(ROWS)
    is_parse = np.array([name == "parse" for name in tree.tree.table.names])
    assert value_of_leaves(tree, is_parse) == 7


def test_outermost_takes_each_stack_once() -> None:
    # Preorder: 0 root, 1 a, 2 a/b, 3 a/b/a, 4 c, 5 c/a
    end = np.array([6, 4, 4, 4, 6, 6])
    matched = np.array([False, True, False, True, False, True])
    assert outermost(matched, end).tolist() == [False, True, False, False, False, True]
    assert outermost(matched[2:4], end, 2).tolist() == [False, True]
