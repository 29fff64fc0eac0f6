# SPDX-License-Identifier: Apache-2.0
"""Nodes with equal paths of names are one; columns stand in preorder."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile.names import CodeKind
from server.profile.nametable import NameTable, PathFlag
from server.profile.nametree import TreeBuilder
from tests.server.profile.trees import Row, functions, path, prefix_tree, rows_of, totals_of, weighed

STACKS = st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=5), st.integers(1, 1000)), max_size=30)


def test_preorder_has_siblings_by_name() -> None:
    tree = weighed([(["m", "z"], 2), (["m", "b", "q"], 3), (["a"], 5)])
    assert [path(tree, n) for n in range(len(tree.tree))] == [(), ("a",), ("m",), ("m", "b"), ("m", "b", "q"), ("m", "z")]
    assert tree.tree.end.tolist() == [6, 2, 6, 5, 5, 6]
    assert tree.tree.depth.tolist() == [0, 1, 1, 2, 3, 2]
    assert tree.tree.parent.tolist() == [0, 0, 0, 2, 3, 2]


def test_places_of_one_name_are_one_node() -> None:
    # Two addresses of one function: nodes 1 and 2 are named alike, and so are their children.
    table = NameTable()
    numbers = table.intern(functions(["f", "g"]))
    builder = TreeBuilder(table)
    builder.extend(np.array([0, 0, 0, 1, 2]), np.array([0, numbers[0], numbers[0], numbers[1], numbers[1]]))
    tree, nodes = builder.tree()
    assert len(tree) == 3
    assert nodes.tolist() == [0, 1, 1, 2, 2]


def test_a_node_is_inlined_when_all_that_it_stands_for_is() -> None:
    table = NameTable()
    f, g = table.intern(functions(["f", "g"])).tolist()
    builder = TreeBuilder(table)
    parents, names = np.array([0, 0, 1, 1, 0]), np.array([0, f, g, g, g])
    builder.extend(parents[:4], names[:4], np.array([False, False, True, True]))
    assert builder.tree()[0].inlined.tolist() == [False, False, True]
    builder.extend(parents, names, np.array([False, False, True, True, False]))
    tree, nodes = builder.tree()
    assert tree.inlined[nodes].tolist() == [False, False, True, True, False]
    builder.extend(np.append(parents, 1), np.append(names, g), np.array([False, False, True, True, False, False]))
    tree, nodes = builder.tree()
    assert tree.inlined[nodes].tolist() == [False] * 6


def test_ids_are_those_of_the_path_and_fit_javascript() -> None:
    one, other = weighed([(["a", "b"], 7)]), weighed([(["0", "1"], 2), (["a", "b"], 3), (["a", "c"], 5)])
    ids = {path(other, n): int(other.tree.identity[n]) for n in range(len(other.tree))}
    assert int(one.tree.identity[2]) == ids["a", "b"]
    assert ids[()] == 0
    assert len(set(ids.values())) == len(ids)
    assert all(0 <= i < 2**53 for i in ids.values())
    assert other.tree.find(ids["a", "b"]) == [path(other, n) for n in range(len(other.tree))].index(("a", "b"))
    assert other.tree.find(12345) is None


def test_flags_gather_along_the_path() -> None:
    table = NameTable()
    numbers = table.intern(functions(["[truncated]", "f"], [CodeKind.MARK, CodeKind.NATIVE]))
    table.flag(numbers[:1], np.array([PathFlag.TRUNCATED], np.uint8))
    builder = TreeBuilder(table)
    builder.extend(np.array([0, 0, 1, 0]), np.array([0, numbers[0], numbers[1], numbers[1]]))
    tree, nodes = builder.tree()
    assert tree.flags[nodes].tolist() == [0, PathFlag.TRUNCATED, PathFlag.TRUNCATED, 0]


def test_a_stack_of_30000_frames_is_a_tree() -> None:
    tree = weighed([([f"f{n % 7}" for n in range(30_000)], 23)])
    assert len(tree.tree) == 30_001
    assert int(tree.tree.depth[-1]) == 30_000
    assert set(tree.total.tolist()) == {23}


@given(STACKS)
@settings(deadline=None, max_examples=60)
def test_values_come_out_as_they_went_in(rows: list[Row]) -> None:
    own: dict[tuple[str, ...], int] = {}
    total: dict[tuple[str, ...], int] = {(): 0}
    for frames, value in rows:
        own[tuple(frames)] = own.get(tuple(frames), 0) + value
        for depth in range(len(frames) + 1):
            total[tuple(frames[:depth])] = total.get(tuple(frames[:depth]), 0) + value
    tree = weighed(rows)
    assert rows_of(tree) == own
    assert totals_of(tree) == total


@given(STACKS, st.integers(0, 30))
@settings(deadline=None, max_examples=60)
def test_a_tree_that_grew_is_the_tree_made_at_once(rows: list[Row], first: int) -> None:
    parents, names, ends = prefix_tree(frames for frames, _ in rows)
    whole = weighed(rows)
    table = NameTable()
    builder = TreeBuilder(table)
    for size in (min(1 + first, len(parents)), len(parents)):
        numbers = np.concatenate([np.zeros(1, np.intp), table.intern(functions(names[1:size]))])
        builder.extend(np.array(parents[:size], np.intp), numbers)
        tree, nodes = builder.tree()
    assert tree.identity.tolist() == whole.tree.identity.tolist()
    assert tree.end.tolist() == whole.tree.end.tolist()
    assert [int(tree.depth[nodes[end]]) for end in ends] == [len(frames) for frames, _ in rows]
