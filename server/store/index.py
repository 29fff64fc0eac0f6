# SPDX-License-Identifier: Apache-2.0
"""The index of series that stands beside the rows of a batch or a block: who is in it, and the sums of each window.

Timelines are made of these alone. A batch has one entry a series, and where its rows lie; a block one entry a series and window.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.store.container import Container, StoredColumn, compress, decompress, pack

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_SUM = "sum."


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One series in one window."""

    series_id: int
    start_unix_ns: int
    sums: Mapping[str, int]
    """Total of each column, or its largest value where it merges by max."""
    offset: int = 0
    size_bytes: int = 0
    """Where the rows of the series lie in the unpacked rows of a batch; not used in blocks."""


@dataclass(frozen=True, slots=True)
class SeriesIndex:
    """Entries as columns."""

    series: I64
    starts_unix_ns: I64
    offsets: I64
    sizes_bytes: I64
    sums: Mapping[str, U64]

    def take(self, which: I64 | npt.NDArray[np.bool_]) -> "SeriesIndex":
        """Some of the entries."""
        sums = {name: values[which] for name, values in self.sums.items()}
        return SeriesIndex(self.series[which], self.starts_unix_ns[which], self.offsets[which], self.sizes_bytes[which], sums)


def index_of(entries: Sequence[IndexEntry]) -> SeriesIndex:
    """Columns of entries."""
    names = dict.fromkeys(name for entry in entries for name in entry.sums)
    return SeriesIndex(
        np.array([entry.series_id for entry in entries], np.int64),
        np.array([entry.start_unix_ns for entry in entries], np.int64),
        np.array([entry.offset for entry in entries], np.int64),
        np.array([entry.size_bytes for entry in entries], np.int64),
        {name: np.array([entry.sums.get(name, 0) for entry in entries], np.uint64) for name in names},
    )


def join(indexes: Sequence[SeriesIndex]) -> SeriesIndex:
    """All entries of several indexes; a column that one does not have is 0 there."""
    names = dict.fromkeys(name for index in indexes for name in index.sums)
    zeros = [np.zeros(index.series.size, np.uint64) for index in indexes]
    return SeriesIndex(
        np.concatenate([index.series for index in indexes]),
        np.concatenate([index.starts_unix_ns for index in indexes]),
        np.concatenate([index.offsets for index in indexes]),
        np.concatenate([index.sizes_bytes for index in indexes]),
        {name: np.concatenate([index.sums.get(name, zero) for index, zero in zip(indexes, zeros, strict=True)]) for name in names},
    )


def index_bytes(index: SeriesIndex) -> bytes:
    """As stored."""
    base = int(index.starts_unix_ns.min()) if index.series.size else 0
    columns = [
        StoredColumn("series", index.series),
        StoredColumn("base", np.array([base], np.int64)),
        StoredColumn("starts", index.starts_unix_ns - base),
        StoredColumn("offsets", index.offsets),
        StoredColumn("sizes", index.sizes_bytes),
    ]
    return compress(pack(columns + [StoredColumn(f"{_SUM}{name}", values) for name, values in index.sums.items()]))


def index_from_bytes(blob: bytes, columns: Collection[str] | None = None) -> SeriesIndex:
    """What `index_bytes` wrote, with the sums of the named columns that are there, or of all.

    A batch has those of all its kinds, some 200: reading them takes ten times as long as the rest.
    """
    container = Container(decompress(blob))
    names = ("series", "base", "starts", "offsets", "sizes")
    series, base, starts, offsets, sizes = (container.plain(name).astype(np.int64) for name in names)
    stored = (name.removeprefix(_SUM) for name in container.names if name.startswith(_SUM))
    sums = {name: container.plain(_SUM + name).astype(np.uint64) for name in stored if columns is None or name in columns}
    return SeriesIndex(series, base[0] + starts, offsets, sizes, sums)
