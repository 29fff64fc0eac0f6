# SPDX-License-Identifier: Apache-2.0
"""Search in places, and what a hostile table may not say."""

from dataclasses import replace

import numpy as np
import pytest

from server.symbols.inlines import Inlines
from tests.server.symbols.inline_tables import shop


def test_places_reach_to_the_next_one() -> None:
    wanted = np.array([0, 0xFF, 0x100, 0x10F, 0x110, 0x1FF, 0x200, 1 << 40, (1 << 64) - 1], np.uint64)
    assert shop().find(wanted).tolist() == [-1, -1, 0, 0, 1, 4, 5, -1, -1]


def test_a_shift_moves_all_places() -> None:
    assert shop().shifted(-0x80).find(np.array([0x7F, 0x80, 0x90], np.uint64)).tolist() == [-1, 0, 1]


def test_texts_are_by_number() -> None:
    assert [shop().text(n) for n in range(6)] == [b"", b"main", b"half", b"third", b"/src/main.c", b"/src/half.h"]


def test_what_was_written_has_no_flaw() -> None:
    assert shop().flaw() == ""


@pytest.mark.parametrize(
    ("column", "at", "value", "flaw"),
    [
        ("starts", 1, 0, "not sorted"),
        ("place_nodes", 0, 9, "refers to nothing"),
        ("place_files", 0, 6, "refers to nothing"),
        ("node_parents", 2, 2, "later one"),
        ("node_parents", 1, 3, "later one"),
        ("node_names", 1, 6, "refers to nothing"),
        ("node_files", 1, 6, "refers to nothing"),
        ("text_bounds", 3, 99, "not sorted"),
        ("text_bounds", 0, 1, "not sorted"),
    ],
)
def test_each_lie_is_a_flaw(column: str, at: int, value: int, flaw: str) -> None:
    lying = getattr(shop(), column).copy()
    lying[at] = value
    assert flaw in replace(shop(), **{column: lying}).flaw()


@pytest.mark.parametrize("column", ["place_nodes", "place_files", "place_lines", "node_names", "node_files", "node_lines"])
def test_columns_of_other_lengths_are_a_flaw(column: str) -> None:
    made: Inlines = shop()
    assert "differ in length" in replace(made, **{column: getattr(made, column)[:-1]}).flaw()
