# SPDX-License-Identifier: Apache-2.0
"""The codec of columns and string tables, byte by byte, and against hostile input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.columns import ColumnError, decode_column, decode_strings, encode_ascending, encode_column, encode_strings

PLAIN, DELTA = pb.COLUMN_CODING_PLAIN, pb.COLUMN_CODING_DELTA
LARGEST = (1 << 64) - 1


def test_elements_lie_in_planes_lowest_first() -> None:
    assert encode_column([0x0102, 0x0304]) == pb.Column(data=b"\x02\x04\x01\x03", width=2, coding=PLAIN)
    assert encode_ascending([0x10, 0x10, 0x110]) == pb.Column(data=b"\x10\x00\x00\x00\x00\x01", width=2, coding=DELTA)


@pytest.mark.parametrize(
    ("value", "width"), [(0, 1), (255, 1), (256, 2), (65535, 2), (65536, 4), ((1 << 32) - 1, 4), (1 << 32, 8), (LARGEST, 8)]
)
def test_width_is_the_least_that_holds_the_largest(value: int, width: int) -> None:
    column = encode_column([7, value])
    assert (column.width, decode_column(column, 2).tolist()) == (width, [7, value])


def test_empty_column_has_no_bytes() -> None:
    assert encode_column([]) == pb.Column(coding=PLAIN)
    assert decode_column(pb.Column(), 0).tolist() == []


@given(st.lists(st.integers(0, LARGEST), max_size=40))
def test_any_values_come_back(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    assert decode_column(encode_column(array), 40).tolist() == values
    assert decode_column(encode_ascending(np.sort(array)), 40).tolist() == sorted(values)
    assert decode_column(encode_ascending(array), 40).tolist() == values


def test_caller_keeps_its_array() -> None:
    values = np.array([5, 3], np.uint64)
    encode_ascending(values)
    assert values.tolist() == [5, 3]


@pytest.mark.parametrize(
    "column",
    [
        pb.Column(data=b"abc", width=0),
        pb.Column(data=b"abc", width=3),
        pb.Column(data=b"abc", width=2),
        pb.Column(data=b"abc", width=1 << 31),
        pb.Column(data=b"abcdef", width=1),
        pb.Column.FromString(b"\x0a\x01a\x10\x01\x18\x07"),  # data "a", width 1, coding 7
    ],
)
def test_columns_that_do_not_hold_together_are_refused(column: pb.Column) -> None:
    with pytest.raises(ColumnError):
        decode_column(column, 5)


def test_limit_counts_elements() -> None:
    assert decode_column(pb.Column(data=b"abcd", width=2), 2).size == 2
    with pytest.raises(ColumnError, match="at most 1"):
        decode_column(pb.Column(data=b"abcd", width=2), 1)


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_any_strings_come_back(strings: list[bytes]) -> None:
    assert decode_strings(encode_strings([b"", *strings]), 10) == [b"", *strings]


@pytest.mark.parametrize("sizes", [[], [1], [4], [2, 2], [LARGEST, 4], [1 << 63, 1 << 63, 3]])
def test_sizes_that_miss_the_blob_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ColumnError):
        decode_strings(pb.StringTable(blob=b"abc", sizes=encode_column(np.array(sizes, np.uint64))), 9)
