# SPDX-License-Identifier: Apache-2.0
"""Totals of functions count each stack once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile.top import first_calls, function_values
from server.profile.totals import WeighedTree
from tests.server.profile.trees import Row, weighed

STACKS = st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=6), st.integers(1, 1000)), max_size=30)


def table_of(tree: WeighedTree) -> dict[str, tuple[int, int]]:
    values = function_values(tree, first_calls(tree.tree))
    names = [tree.tree.table.names[n] for n in values.name.tolist()]
    return dict(zip(names, zip(values.own.tolist(), values.total.tolist(), strict=True), strict=True))


def test_recursion_is_counted_once_per_stack() -> None:
    tree = weighed([(["main", "f", "g", "f"], 7), (["main", "f"], 23), (["g"], 2)])
    assert table_of(tree) == {"main": (0, 30), "f": (30, 30), "g": (2, 9)}


def test_no_stacks_make_an_empty_table() -> None:
    assert table_of(weighed([])) == {}


@given(STACKS)
@settings(deadline=None, max_examples=60)
def test_table_agrees_with_counting_by_hand(rows: list[Row]) -> None:
    expected: dict[str, tuple[int, int]] = {}
    for frames, value in rows:
        for name in set(frames):
            own, total = expected.get(name, (0, 0))
            expected[name] = (own + (value if frames[-1] == name else 0), total + value)
    assert table_of(weighed(rows)) == expected
