# SPDX-License-Identifier: Apache-2.0
"""Names by function, and by function and line."""

import numpy as np

from server.profile.names import FrameParts, FunctionTable
from server.profile.partnames import distinct_names
from tests.server.profile.trees import functions


def parts(*rows: tuple[int, int, int]) -> FrameParts:
    """(function, file, line) of parts; one part a frame."""
    function, file, line = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    count = len(rows)
    return FrameParts(np.arange(count + 1), function, np.zeros(count, np.bool_), file, line, ["", "/src/a.cc", "/src/b.h"])


def rows_of(table: FunctionTable) -> list[tuple[str, str, int]]:
    return list(zip(table.names, table.files, table.lines.tolist(), strict=True))


def test_a_function_is_one_name_whatever_the_line() -> None:
    """F23: main (a.cpp:50) and main (a.cpp:51)."""
    table, place = distinct_names(functions(["main", "f"]), parts((0, 0, 0), (1, 2, 7), (0, 1, 50), (0, 1, 51)), 0, is_by_line=False)
    assert rows_of(table) == [("main", "/src/a.cc", 50), ("f", "/src/b.h", 7)]
    assert place.tolist() == [0, 1, 0, 0]


def test_by_line_each_line_is_a_name() -> None:
    table, place = distinct_names(functions(["main", "f"]), parts((0, 1, 51), (1, 0, 0), (0, 1, 50), (0, 1, 51)), 0, is_by_line=True)
    assert rows_of(table) == [("main a.cc:50", "/src/a.cc", 50), ("main a.cc:51", "/src/a.cc", 51), ("f", "", 0)]
    assert place.tolist() == [1, 2, 0, 1]


def test_only_parts_from_the_first_on_are_looked_at() -> None:
    table, place = distinct_names(functions(["main", "f"]), parts((0, 1, 50), (1, 2, 7)), 1, is_by_line=False)
    assert rows_of(table) == [("f", "/src/b.h", 7)]
    assert place.tolist() == [0]
