# SPDX-License-Identifier: Apache-2.0
"""The share of a search counts each stack once."""

from server.profile.search import match_names, value_of_matches
from tests.server.profile.trees import weighed


def test_recursion_is_counted_once() -> None:
    tree = weighed([(["parse", "parse", "parse"], 7), (["main", "parse"], 23), (["main"], 2)])
    matched = match_names(tree.tree.table, lambda name: "parse" in name)
    assert value_of_matches(tree, matched) == 30


def test_only_the_view_is_counted() -> None:
    tree = weighed([(["a", "x", "y"], 7), (["b", "x"], 23)])
    matched = match_names(tree.tree.table, lambda name: name == "x")
    assert value_of_matches(tree, matched, root=1) == 7


def test_the_root_matches_nothing() -> None:
    tree = weighed([(["a"], 7)])
    assert match_names(tree.tree.table, lambda _: True).tolist() == [False, True]
