# SPDX-License-Identifier: Apache-2.0
"""Rows with one key become one, whatever the columns are."""

import numpy as np
import numpy.typing as npt
import pytest

from agent.collect.rows import RowKeys, merged
from emberwatch.v1 import batch_pb2 as pb

SUM, MAX, HISTOGRAM = pb.MERGE_SUM, pb.MERGE_MAX, pb.MERGE_HISTOGRAM


def _keys(*rows: tuple[int, int, int, int, int, int]) -> RowKeys:
    return RowKeys(*np.array(rows or np.zeros((0, 6)), np.int64).T)


def _values(*values: int) -> npt.NDArray[np.uint64]:
    return np.array(values, np.uint64)


def test_sums_add_up_and_maxima_do_not() -> None:
    keys = _keys((1, 5, 0, 2, 3, 4), (0, 9, 0, 0, 0, 0), (1, 5, 0, 2, 3, 4))
    rows = merged(keys, [(SUM, _values(7, 2, 23)), (MAX, _values(7, 2, 23)), (HISTOGRAM, _values(1, 0, 1))])
    assert [column.tolist() for column in rows.values] == [[2, 30], [2, 23], [0, 2]]
    assert [column.tolist() for column in rows.keys.columns()] == [[0, 1], [9, 5], [0, 0], [0, 2], [0, 3], [0, 4]]
    assert (rows.of_series(0), rows.of_series(1), rows.of_series(2)) == (slice(0, 1), slice(1, 2), slice(2, 2))


@pytest.mark.parametrize("place", range(6))
def test_rows_that_differ_in_one_thing_stay_apart(place: int) -> None:
    other = tuple(1 if index == place else 0 for index in range(6))
    rows = merged(_keys((0, 0, 0, 0, 0, 0), other), [(SUM, _values(7, 23))])  # type: ignore[arg-type]
    assert rows.values[0].tolist() == [7, 23]


def test_numbers_that_do_not_fit_into_one_word_together() -> None:
    large = (1 << 28) - 1
    rows = merged(
        _keys((3, large, large, large, 1, 1), (3, large, large, large, 1, 2), (3, large, large, large, 1, 1), (2, 1, 1, 1, 1, 1)),
        [(SUM, _values(1, 2, 4, 8))],
    )
    assert rows.values[0].tolist() == [8, 5, 2]
    assert rows.keys.classes.tolist() == [1, 1, 2]


def test_no_rows_are_no_rows() -> None:
    assert merged(_keys(), [(SUM, _values()), (MAX, _values())]).values[1].tolist() == []
