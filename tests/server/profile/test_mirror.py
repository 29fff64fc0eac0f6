# SPDX-License-Identifier: Apache-2.0
"""A blocked stack goes on, over a mark, in the stack of its waker, leaf first; every value ends where its story ends."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from server.profile.mirror import Pairs, mirrored
from tests.server.profile.trees import rows_of, tree_of_stacks

MARK = "[woken by]"
Stack = tuple[str, ...]


def laid(pairs: list[tuple[Stack, Stack, int]]) -> dict[Stack, int]:
    """Self values of the mirrored tree by path; stacks are root first."""
    tree, nodes = tree_of_stacks([stack for first, second, _ in pairs for stack in (first, second)])
    weighed = mirrored(tree, Pairs(nodes[0::2], nodes[1::2], np.array([value for *_, value in pairs], np.int64)), MARK)
    return rows_of(weighed)


def test_the_waker_is_mirrored_above_the_blocked_stack() -> None:
    assert laid(
        [
            (("main", "take"), ("main", "give", "post"), 7),
            (("main", "take"), ("timer",), 23),
            (("main", "take"), (), 2),
            ((), ("timer",), 5),
        ]
    ) == {
        ("main", "take", MARK, "post", "give", "main"): 7,
        ("main", "take", MARK, "timer"): 23,
        ("main", "take"): 2,
        (MARK, "timer"): 5,
    }


def test_nothing_is_an_empty_tree() -> None:
    assert laid([]) == {}


STACKS = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)


@given(st.lists(st.tuples(STACKS, STACKS, st.integers(1, 100)), max_size=12))
def test_every_value_stands_where_its_story_ends(pairs: list[tuple[Stack, Stack, int]]) -> None:
    expected: dict[Stack, int] = {}
    for first, second, value in pairs:
        path = (*first, MARK, *reversed(second)) if second else first
        expected[path] = expected.get(path, 0) + value
    assert laid(pairs) == expected
