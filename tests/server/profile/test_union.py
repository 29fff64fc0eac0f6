# SPDX-License-Identifier: Apache-2.0
"""One tree holds the stacks of all parts, and tells where each went."""

from server.profile.nametree import NameTree
from server.profile.union import Part, union
from tests.server.profile.sides import named_tree


def path(tree: NameTree, node: int) -> tuple[str, ...]:
    frames: list[str] = []
    while node:
        frames.insert(0, tree.table.names[tree.name[node]])
        node = int(tree.parent[node])
    return tuple(frames)


def test_equal_paths_are_one_node_and_unused_ones_are_left_out() -> None:
    one, at_one = named_tree([["main", "a"], ["main", "unused"]])
    two, at_two = named_tree([["main"], ["main", "a"], ["main", "b"]])
    tree, (first, second) = union([Part(one, at_one[:1]), Part(two, at_two)])
    assert [path(tree, n) for n in range(len(tree))] == [(), ("main",), ("main", "a"), ("main", "b")]
    assert [path(tree, n) for n in first.tolist()] == [("main", "a")]
    assert [path(tree, n) for n in second.tolist()] == [("main",), ("main", "a"), ("main", "b")]


def test_labels_stand_above_and_are_shared() -> None:
    one, at = named_tree([["main"]])
    tree, places = union([Part(one, at, "worker"), Part(one, at, "io"), Part(one, at, "worker")])
    assert [path(tree, int(place[0])) for place in places] == [("worker", "main"), ("io", "main"), ("worker", "main")]
    assert len(tree) == 5


def test_nothing_makes_a_root() -> None:
    assert len(union([])[0]) == 1
