# SPDX-License-Identifier: Apache-2.0
"""The codec of `Column` and `StringTable` (layout: batch.proto), shared by agent and server so that it is stated once.

Values are unsigned; encoded columns are as narrow as their largest element. Everything here works on whole arrays.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]
_WIDTHS = (1, 2, 4, 8)


class ColumnError(ValueError):
    """A column or table that does not hold what its layout promises."""


def encode_column(values: npt.ArrayLike) -> pb.Column:
    """Lay out `values` (unsigned integers, any order) as they are."""
    return _pack(np.ascontiguousarray(values, np.uint64), pb.COLUMN_CODING_PLAIN)


def encode_ascending(values: npt.ArrayLike) -> pb.Column:
    """Lay out `values`, which must not descend, as differences."""
    array = np.ascontiguousarray(values, np.uint64)
    steps = array.copy()
    np.subtract(array[1:], array[:-1], out=steps[1:])
    return _pack(steps, pb.COLUMN_CODING_DELTA)


def decode_column(column: pb.Column, most: int) -> U64:
    """Give back the values of `column`. Raises ColumnError when the layout is off or there are more than `most`."""
    data, width = column.data, column.width
    if not data:
        return np.zeros(0, np.uint64)
    if width not in _WIDTHS or len(data) % width:
        raise ColumnError(f"column of {len(data)} bytes with width {width}")
    count = len(data) // width
    if count > most:
        raise ColumnError(f"column of {count} elements where at most {most} are allowed")
    planes = np.frombuffer(data, np.uint8)
    elements: U64
    if width == 1:
        elements = planes.astype(np.uint64)
    else:
        elements = np.ascontiguousarray(planes.reshape(width, count).T).view(f"<u{width}")[:, 0].astype(np.uint64)
    if column.coding == pb.COLUMN_CODING_DELTA:
        return np.cumsum(elements, dtype=np.uint64)
    if column.coding in (pb.COLUMN_CODING_PLAIN, pb.COLUMN_CODING_UNSPECIFIED):
        return elements
    raise ColumnError(f"unknown coding {column.coding}")


def encode_strings(strings: Sequence[bytes]) -> pb.StringTable:
    """Lay out a table of strings; the caller puts the empty string first."""
    return pb.StringTable(blob=b"".join(strings), sizes=encode_column([len(s) for s in strings]))


def decode_strings(table: pb.StringTable, most: int) -> list[bytes]:
    """Give back the strings of `table`. Raises ColumnError when sizes and blob disagree or there are more than `most`."""
    sizes = decode_column(table.sizes, most)
    if sizes.size and int(sizes.max()) > len(table.blob):
        raise ColumnError("a string is longer than the table that holds it")
    ends = np.cumsum(sizes)
    if (int(ends[-1]) if ends.size else 0) != len(table.blob):
        raise ColumnError(f"strings end at {int(ends[-1]) if ends.size else 0} in a table of {len(table.blob)} bytes")
    blob, bounds = table.blob, [0, *ends.tolist()]
    return [blob[start:end] for start, end in itertools.pairwise(bounds)]


def _pack(elements: U64, coding: pb.ColumnCoding) -> pb.Column:
    if not elements.size:
        return pb.Column(coding=coding)
    largest = int(elements.max())
    if largest < 256:
        return pb.Column(data=elements.astype(np.uint8).tobytes(), width=1, coding=coding)
    width = next(w for w in _WIDTHS if largest < 1 << (8 * w))
    planes = elements.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
    return pb.Column(data=planes.tobytes(), width=width, coding=coding)
