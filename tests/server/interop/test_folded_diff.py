# SPDX-License-Identifier: Apache-2.0
"""Folded texts side by side: rows F5, F12 and F13 of the reports."""

import gc
import tracemalloc
from itertools import chain, repeat

import pytest

from server.errors import BadRequest
from server.interop.folded import FoldedLines, export_two_counts, import_text
from server.interop.folded_diff import FoldedSide, folded_diff


def side(text: str, name: str = "x.folded") -> FoldedSide:
    return FoldedSide(name, import_text(text))


def test_two_counts_of_all_stacks_of_either() -> None:
    answer = folded_diff(side("main;old_mid;old_leaf 10\n"), side("main 10\n"))
    assert list(export_two_counts(answer.diff.a, answer.diff.b)) == ["main 0 10", "main;old_mid;old_leaf 10 0"]
    assert (answer.a.samples, answer.b.samples) == (10, 10)


def test_a_stack_that_comes_twice_is_added() -> None:
    answer = folded_diff(side("main;a 7\nmain;a 23\n"), side("main;a 30\n"))
    assert list(export_two_counts(answer.diff.a, answer.diff.b)) == ["main;a 30 30"]
    assert not answer.diff.changes().any()


def test_names_survive_and_kernel_frames_are_not_functions_of_that_name() -> None:
    text = r"main;a\x3bb;write_[k] 7" + "\nmain;a\\x3bb;write 3\n"
    answer = folded_diff(side(text), side(text))
    assert set(export_two_counts(answer.diff.a, answer.diff.b)) == {r"main;a\x3bb;write_[k] 7 7", r"main;a\x3bb;write 3 3"}


def test_another_rate_is_no_change() -> None:
    answer = folded_diff(side("main;a 7000\nmain;b 3000\n"), side("main;a 700\nmain;b 300\n"))
    assert not answer.diff.changes().any()


def test_lines_that_are_no_stacks_are_told() -> None:
    answer = folded_diff(side("main 10\nmain 1e3\n\n", "a.folded"), side("no count\n", "b.folded"))
    assert answer.notes == (
        "a.folded: 2 lines are no stacks, the first is line 2: the count '1e3' is not a whole number of at most 19 digits",
        "b.folded: 1 lines are no stacks, the first is line 1: the count 'count' is not a whole number of at most 19 digits",
        "side B is empty",
        "nothing can be compared: no change is marked",
    )


def test_counts_that_cannot_be_added_exactly_are_refused() -> None:
    half = 1 << 52
    folded_diff(side(f"a {half}\nb {half - 1}\n"), side("a 1\n"))
    with pytest.raises(BadRequest, match="add up to 2\\^53 or more"):
        folded_diff(side(f"a {half}\nb {half}\n"), side("a 1\n"))
    with pytest.raises(BadRequest, match="add up"):
        folded_diff(side("a 9999999999999999999\n"), side("a 1\n"))


def test_a_stack_of_30000_frames() -> None:
    text = ";".join(f"f{i % 7}" for i in range(30_000))
    answer = folded_diff(side(f"{text} 70\n"), side(f"{text} 7\n"))
    assert len(answer.diff.tree) == 30_001
    assert not answer.diff.changes().any()


def test_memory_grows_with_distinct_stacks_and_not_with_the_file() -> None:
    """Row F20 in small: the same 100 stacks of 40 frames, five times and fifty times, and a thousand of them."""
    few, many, distinct = _peak_bytes(100, 5), _peak_bytes(100, 50), _peak_bytes(1000, 5)
    text_bytes = sum(map(len, _stacks_of(100))) * 50
    assert many - few < text_bytes / 10
    assert many * 2 < distinct


def _stacks_of(count: int) -> list[str]:
    names = [[f"frame_of_level_{depth}_{i >> (38 - depth)}" for depth in range(39)] for i in range(count)]
    return [f"main;{';'.join(frames)} 1\n" for frames in names]


def _peak_bytes(count: int, times: int) -> int:
    """The most memory that a diff of such a side with a small one holds."""
    lines = _stacks_of(count)
    gc.collect()
    tracemalloc.start()
    try:
        answer = folded_diff(FoldedSide("a", FoldedLines(chain.from_iterable(repeat(lines, times)))), side("main 1\n"))
        assert answer.a.samples == count * times
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
