# SPDX-License-Identifier: Apache-2.0
"""Adds up rows that became alike on their way (processes of one service, thread names of one form), without a loop over rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.ragged import Index
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]
_PACKED_BITS = 62


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Numbers of series, stacks, strings; columns of equal length."""

    series: Index
    stacks: Index
    seconds: Index
    objects: Index
    threads: Index
    classes: Index

    def columns(self) -> tuple[Index, ...]:
        """In the order by which rows are sorted."""
        return (self.series, self.stacks, self.seconds, self.objects, self.threads, self.classes)


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows sorted by key, no two alike; `values` has one column for each that came in."""

    keys: RowKeys
    values: tuple[U64, ...]

    def of_series(self, series: int) -> slice:
        """Where the rows of a series lie."""
        first, end = np.searchsorted(self.keys.series, (series, series + 1)).tolist()
        return slice(first, end)


def merged(keys: RowKeys, columns: Sequence[tuple[pb.Merge, U64]]) -> MergedRows:
    """Sort, and make one of rows with the same key: the larger of maxima, the sum of all else."""
    packed = _packed(keys.columns())
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    is_first = np.ones(len(packed), np.bool_)
    is_first[1:] = packed[1:] != packed[:-1]
    firsts = np.flatnonzero(is_first)
    kept = order[firsts]
    values = tuple(_reduced(merge, values[order], firsts) for merge, values in columns)
    return MergedRows(RowKeys(*(column[kept] for column in keys.columns())), values)


def _packed(columns: Sequence[Index]) -> Index:
    """One number a row that sorts like the columns do. Where they do not fit into one word they are numbered in between."""
    packed = np.zeros(len(columns[0]), np.int64)
    bits = 0
    for column in columns:
        width = int(column.max(initial=0)).bit_length()
        if bits + width > _PACKED_BITS:
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
            bits = int(packed.max(initial=0)).bit_length()
        packed = packed << width | column
        bits += width
    return packed


def _reduced(merge: pb.Merge, values: U64, firsts: Index) -> U64:
    if not len(firsts):
        return values
    reduce = np.maximum if merge == pb.MERGE_MAX else np.add
    return np.asarray(reduce.reduceat(values, firsts))
