# SPDX-License-Identifier: Apache-2.0
"""Columns as bytes and back: every width, differences, multiples, lengths of their own."""

import numpy as np
import pytest

from server.errors import ServerError
from server.store.container import Container, StoredColumn, compress, decompress, pack, unpacked_bytes


@pytest.mark.parametrize("values", [[], [0], [255], [256, 1], [65_535, 65_536], [2**32 - 1, 2**32], [2**64 - 1, 0, 7]])
def test_plain_columns_come_back_as_narrow_as_can_be(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    back = Container(pack([StoredColumn("a", array)])).plain("a")
    assert back.tolist() == values
    widest = max(values, default=0).bit_length()
    assert back.dtype.itemsize == next(width for width in (1, 2, 4, 8) if widest <= 8 * width)


def test_ascending_columns_are_stored_as_differences() -> None:
    values = np.arange(0, 2_000_000, 200)
    data = pack([StoredColumn("a", values, is_ascending=True)])
    assert len(data) < values.size + 60
    assert Container(data).ascending("a").tolist() == values.tolist()


def test_multiples_cost_nothing_and_come_back_as_values() -> None:
    data = pack([StoredColumn("first", np.array([7, 23])), StoredColumn("ns", np.zeros(0, np.uint64), times_first=10**7)])
    container = Container(memoryview(data))
    assert container.names == ("first", "ns")
    assert (container.times_first("ns"), container.times_first("first")) == (10**7, 0)
    assert container.plain("ns", "first").tolist() == [7 * 10**7, 23 * 10**7]


def test_columns_of_different_lengths_stand_side_by_side() -> None:
    container = Container(
        decompress(compress(pack([StoredColumn(name, np.arange(size) * 300) for name, size in (("a", 3), ("b", 0), ("c", 5))])))
    )
    assert [container.plain(name).size for name in container.names] == [3, 0, 5]
    assert container.plain("c").tolist() == [0, 300, 600, 900, 1200]


def test_damaged_data_is_told_in_words() -> None:
    blob = compress(b"of 23 bytes, or of more")
    assert (unpacked_bytes(blob), decompress(blob)) == (23, b"of 23 bytes, or of more")
    for read in (decompress, unpacked_bytes):
        with pytest.raises(ServerError, match="stored data of 7 bytes is damaged"):
            read(b"nothing")
