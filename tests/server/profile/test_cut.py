# SPDX-License-Identifier: Apache-2.0
"""What is cut off is counted: shown and trimmed are the total, and nothing is sent that cannot be seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile import cut as cut_module
from server.profile.cut import TRIMMED, Cut, View, cut
from tests.server.profile.trees import Row, weighed

STACKS = st.lists(st.tuples(st.lists(st.sampled_from("abcd"), max_size=6), st.integers(1, 1000)), min_size=1, max_size=40)


def names(tree_cut: Cut, table: list[str]) -> list[str]:
    return ["(trimmed)" if n == TRIMMED else table[n] for n in tree_cut.name.tolist()]


def parents_of(depth: list[int]) -> list[int]:
    """Index of each node's parent, from the depths of a preorder."""
    open_nodes: list[int] = []
    parents = []
    for node, level in enumerate(depth):
        del open_nodes[level:]
        parents.append(open_nodes[-1] if open_nodes else -1)
        open_nodes.append(node)
    return parents


def assert_fits(tree_cut: Cut) -> None:
    """Children stand inside their parent, side by side, self to their right; no value is made or lost."""
    depth, start, total = tree_cut.depth.tolist(), tree_cut.start.tolist(), tree_cut.total.tolist()
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents_of(depth)):
        children.setdefault(parent, []).append(node)
    assert children[-1] == [0]
    assert start[0] == 0
    for parent, nodes in children.items():
        if parent < 0:
            continue
        edge = start[parent]
        for node in nodes:
            assert start[node] >= edge
            edge = start[node] + total[node]
        assert edge + int(tree_cut.own[parent]) <= start[parent] + total[parent]


def test_wide_enough_is_all_shown() -> None:
    tree = weighed([(["main", "parse"], 7), (["main", "b"], 2), (["main"], 23)])
    result = cut(tree, View(width_px=1000))
    assert names(result, tree.tree.table.names) == ["", "main", "b", "parse"]
    assert result.start.tolist() == [0, 0, 0, 2]
    assert result.total.tolist() == [32, 32, 2, 7]
    assert result.own.tolist() == [0, 23, 2, 7]
    assert result.depth.tolist() == [0, 1, 2, 2]
    assert (result.trimmed_frames, result.trimmed_value) == (0, 0)


def test_narrow_children_are_one_trimmed_child() -> None:
    # Total 1000, 5 px: half a pixel is 100. Under main: a 900, and ten of 10 with a child each.
    rows: list[Row] = [(["main", "a"], 900), *((["main", f"n{i}", "x"], 10) for i in range(10))]
    tree = weighed(rows)
    result = cut(tree, View(width_px=5))
    assert names(result, tree.tree.table.names) == ["", "main", "a", "(trimmed)"]
    assert result.start.tolist() == [0, 0, 0, 900]
    assert result.total.tolist() == [1000, 1000, 900, 100]
    assert result.hidden.tolist() == [0, 0, 0, 20]
    assert result.identity[3] == result.identity[1]
    assert (result.trimmed_frames, result.trimmed_value) == (20, 100)


def test_what_is_trimmed_and_too_narrow_is_only_counted() -> None:
    tree = weighed([(["a"], 997), (["b", "c"], 3)])
    result = cut(tree, View(width_px=5))
    assert names(result, tree.tree.table.names) == ["", "a"]
    assert (result.trimmed_frames, result.trimmed_value) == (2, 3)


def test_half_a_pixel_is_shown_and_less_is_not() -> None:
    # Total 200, 10 px: half a pixel is 10.
    tree = weighed([(["a"], 181), (["b"], 10), (["c"], 9)])
    assert names(cut(tree, View(width_px=10)), tree.tree.table.names) == ["", "a", "b"]


def test_zoom_fills_the_width_with_a_subtree() -> None:
    tree = weighed([(["a", "x"], 7), (["m", "p"], 2), (["m", "q"], 3), (["z"], 11)])
    root = 3
    result = cut(tree, View(width_px=1000, root=root))
    assert names(result, tree.tree.table.names) == ["m", "p", "q"]
    assert result.start.tolist() == [0, 0, 2]
    assert result.depth.tolist() == [0, 1, 1]


def test_deeper_than_asked_is_trimmed() -> None:
    tree = weighed([(["a", "b", "c"], 7)])
    result = cut(tree, View(width_px=100, depth=1))
    assert names(result, tree.tree.table.names) == ["", "a", "(trimmed)"]
    assert result.hidden.tolist() == [0, 0, 2]
    assert result.total.tolist() == [7, 7, 7]


def test_hidden_matches_mark_the_trimmed_child() -> None:
    tree = weighed([(["main", "a"], 900), (["main", "needle"], 50), (["main", "b"], 50), (["c"], 900)])
    matched = np.array([name == "needle" for name in tree.tree.table.names])
    result = cut(tree, View(width_px=10), matched)
    assert names(result, tree.tree.table.names) == ["", "c", "main", "a", "(trimmed)"]
    assert result.matched.tolist() == [False, False, False, False, True]


def test_empty_tree_is_its_root() -> None:
    result = cut(weighed([]), View(width_px=1200))
    assert result.total.tolist() == [0]
    assert result.name.tolist() == [0]
    assert (result.trimmed_frames, result.trimmed_value) == (0, 0)


def test_30000_frames_are_cut_and_counted() -> None:
    tree = weighed([([f"f{n % 7}" for n in range(30_000)], 23)])
    result = cut(tree, View(width_px=1200))
    assert result.name.size == 1002
    assert result.hidden[-1] == 29_000
    assert result.trimmed_frames == 29_000


def test_number_of_nodes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_module, "MOST_NODES", 10)
    tree = weighed([([f"n{i:02}"], 100 + i) for i in range(23)])
    result = cut(tree, View(width_px=100_000))
    assert result.name.size <= 11
    assert_fits(result)
    assert int(result.own.sum()) + result.trimmed_value == tree.sum


@given(STACKS, st.integers(1, 60), st.integers(1, 7))
@settings(deadline=None, max_examples=80)
def test_shown_and_trimmed_are_the_total(rows: list[Row], width_px: int, depth: int) -> None:
    tree = weighed(rows)
    result = cut(tree, View(width_px=width_px, depth=depth))
    assert_fits(result)
    assert int(result.own.sum()) + result.trimmed_value == tree.sum
    assert int(result.total[0]) == tree.sum
    assert all(total * 2 * width_px >= tree.sum for total in result.total.tolist())
    shown = int((result.hidden == 0).sum())
    assert shown + result.trimmed_frames == len(tree.tree)
