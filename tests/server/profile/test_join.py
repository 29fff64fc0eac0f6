# SPDX-License-Identifier: Apache-2.0
"""Trees made of trees keep every value."""

from hypothesis import given, settings
from hypothesis import strategies as st

from server.profile.join import Branch, join
from tests.server.profile.trees import Row, rows_of, weighed

STACKS = st.lists(st.tuples(st.lists(st.sampled_from("abc"), max_size=5), st.integers(1, 1000)), max_size=20)


def test_equal_paths_of_two_services_are_one() -> None:
    one, other = weighed([(["main", "f"], 7), (["x"], 2)]), weighed([(["main", "f"], 23), (["main"], 3)])
    assert rows_of(join([Branch(one), Branch(other)])) == {("main", "f"): 30, ("x",): 2, ("main",): 3}


def test_labels_are_a_level_above() -> None:
    one, other = weighed([(["f"], 7), ([], 5)]), weighed([(["f"], 23)])
    joined = join([Branch(one, "worker"), Branch(other, "main"), Branch(other, "worker")])
    assert rows_of(joined) == {("worker", "f"): 30, ("worker",): 5, ("main", "f"): 23}


def test_stacks_without_frames_stay_on_the_root() -> None:
    assert rows_of(join([Branch(weighed([([], 7)])), Branch(weighed([([], 2)]))])) == {(): 9}


def test_join_of_nothing_is_empty() -> None:
    assert join([]).sum == 0


@given(STACKS, STACKS)
@settings(deadline=None, max_examples=60)
def test_nothing_is_made_or_lost(one: list[Row], other: list[Row]) -> None:
    expected: dict[tuple[str, ...], int] = {}
    for frames, value in [*one, *other]:
        expected[tuple(frames)] = expected.get(tuple(frames), 0) + value
    assert rows_of(join([Branch(weighed(one)), Branch(weighed(other))])) == expected
