# SPDX-License-Identifier: Apache-2.0
"""A FoldedBatch as numpy columns, so that rows can be taken out of it and the rest sent on.

Taking rows keeps only the table entries that the rows still need, in their old order: parents stay before their children.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

MOST_ROWS = 1 << 26
"""Bound for any column that we read back; our own batches stay far below."""
_MOST_KINDS = 256
_IS_BINARY = np.isin(np.arange(_MOST_KINDS), (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE))
_IS_STRING = np.isin(np.arange(_MOST_KINDS), (pb.PLACE_KIND_JIT, pb.PLACE_KIND_BPF))


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a batch; entry 0 of each is the empty one."""

    strings: Sequence[bytes]
    binaries: Sequence[pb.Binary]
    frame_kinds: Index
    frame_refs: Index
    frame_offsets: U64
    frame_is_return: Index
    node_parents: Index
    """A parent stands before its children; node 0 is its own parent."""
    node_frames: Index

    def frames_with_binaries(self) -> npt.NDArray[np.bool_]:
        """Mark the frames whose ref is a binary."""
        return _IS_BINARY[self.frame_kinds]

    def frames_with_strings(self) -> npt.NDArray[np.bool_]:
        """Mark the frames whose ref is a string."""
        return _IS_STRING[self.frame_kinds]


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of new rows as columns of equal length, indices into the tables."""

    stacks: Index
    seconds: Index
    objects: Index
    threads: Index
    classes: Index

    def take(self, rows: Index) -> "Keys":
        """Keep `rows`, in their order."""
        return Keys(self.stacks[rows], self.seconds[rows], self.objects[rows], self.threads[rows], self.classes[rows])


@dataclass(frozen=True, slots=True)
class Values:
    """One value column: one value a row, or a multiple of the first column."""

    name: str
    unit: str
    merge: pb.Merge
    times_first: int
    values: U64
    """Empty when times_first is not 0."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one series: those of known keys first."""

    labels: Sequence[pb.Label]
    kind: str
    known: U64
    keys: Keys
    columns: tuple[Values, ...]

    def __len__(self) -> int:
        return len(self.known) + len(self.keys.stacks)


@dataclass(frozen=True, slots=True)
class Folded:
    """A whole batch."""

    host: pb.HostFacts
    tables: Tables
    series: tuple[Rows, ...]
    accounts: Sequence[pb.Account]


def folded_from_message(batch: pb.FoldedBatch) -> Folded:
    """Read a batch that this agent made. Raises ColumnError when it does not hold what its layout promises."""
    frames, stacks = batch.frames, batch.stacks
    distances = _index(stacks.parent_distances)
    tables = Tables(
        strings=columns.decode_strings(batch.strings, MOST_ROWS),
        binaries=list(batch.binaries),
        frame_kinds=_index(frames.kinds),
        frame_refs=_index(frames.refs),
        frame_offsets=columns.decode_column(frames.offsets, MOST_ROWS),
        frame_is_return=_index(frames.is_return),
        node_parents=np.arange(len(distances)) - distances,
        node_frames=_index(stacks.frames),
    )
    return Folded(batch.host, tables, tuple(_rows_from_message(series) for series in batch.series), list(batch.accounts))


def message_from_folded(folded: Folded) -> pb.FoldedBatch:
    """Lay a batch out as batch.proto says."""
    tables = folded.tables
    return pb.FoldedBatch(
        version=1,
        host=folded.host,
        strings=columns.encode_strings(tables.strings),
        binaries=tables.binaries,
        frames=pb.FrameTable(
            kinds=columns.encode_column(tables.frame_kinds),
            refs=columns.encode_column(tables.frame_refs),
            offsets=columns.encode_column(tables.frame_offsets),
            is_return=columns.encode_column(tables.frame_is_return),
        ),
        stacks=pb.StackTable(
            parent_distances=columns.encode_column(np.arange(len(tables.node_parents)) - tables.node_parents),
            frames=columns.encode_column(tables.node_frames),
        ),
        series=[_message_from_rows(rows) for rows in folded.series],
        accounts=folded.accounts,
    )


def pruned(folded: Folded) -> Folded:
    """Drop the table entries that no row refers to any more."""
    tables = folded.tables
    node_used = _used(
        len(tables.node_parents), [rows.keys.stacks for rows in folded.series] + [rows.keys.seconds for rows in folded.series]
    )
    _mark_callers(node_used, tables.node_parents)
    nodes, node_at = _kept(node_used)
    frames, frame_at = _kept(_used(len(tables.frame_kinds), [tables.node_frames[nodes]]))
    kinds, refs = tables.frame_kinds[frames], tables.frame_refs[frames]
    is_binary, is_string = _IS_BINARY[kinds], _IS_STRING[kinds]
    binaries, binary_at = _kept(_used(len(tables.binaries), [refs[is_binary]]))
    named = [column for rows in folded.series for column in (rows.keys.objects, rows.keys.threads, rows.keys.classes)]
    strings, string_at = _kept(_used(len(tables.strings), [refs[is_string], *named]))
    kept = Tables(
        strings=[tables.strings[i] for i in strings.tolist()],
        binaries=[tables.binaries[i] for i in binaries.tolist()],
        frame_kinds=kinds,
        frame_refs=np.where(
            is_binary, binary_at[np.where(is_binary, refs, 0)], np.where(is_string, string_at[np.where(is_string, refs, 0)], 0)
        ),
        frame_offsets=tables.frame_offsets[frames],
        frame_is_return=tables.frame_is_return[frames],
        node_parents=node_at[tables.node_parents[nodes]],
        node_frames=frame_at[tables.node_frames[nodes]],
    )
    series = tuple(_moved(rows, node_at, string_at) for rows in folded.series)
    return Folded(folded.host, kept, series, folded.accounts)


def _moved(rows: Rows, node_at: Index, string_at: Index) -> Rows:
    """Rows with their keys pointing into the pruned tables."""
    if not len(rows.keys.stacks):
        return rows
    keys = Keys(
        stacks=node_at[rows.keys.stacks],
        seconds=node_at[rows.keys.seconds],
        objects=string_at[rows.keys.objects],
        threads=string_at[rows.keys.threads],
        classes=string_at[rows.keys.classes],
    )
    return Rows(rows.labels, rows.kind, rows.known, keys, rows.columns)


def _used(count: int, references: Sequence[Index]) -> npt.NDArray[np.bool_]:
    used = np.zeros(count, np.bool_)
    used[0] = True
    for reference in references:
        used[reference] = True
    return used


def _mark_callers(used: npt.NDArray[np.bool_], parents: Index) -> None:
    """Mark every node on the way from a marked one to node 0; a pass a level, over the newly marked only."""
    fresh = np.flatnonzero(used)
    while fresh.size:
        above = parents[fresh]
        above = above[~used[above]]
        used[above] = True
        fresh = above


def _kept(used: npt.NDArray[np.bool_]) -> tuple[Index, Index]:
    """Answer the kept entries and, for each old entry, its new place (of no meaning when it is not kept)."""
    return np.flatnonzero(used), np.cumsum(used) - 1


def _index(column: pb.Column) -> Index:
    return columns.decode_column(column, MOST_ROWS).view(np.int64)


def _rows_from_message(series: pb.Series) -> Rows:
    keys = series.new_keys
    return Rows(
        labels=list(series.labels),
        kind=series.kind,
        known=columns.decode_column(series.known_keys, MOST_ROWS),
        keys=Keys(_index(keys.stacks), _index(keys.seconds), _index(keys.objects), _index(keys.threads), _index(keys.classes)),
        columns=tuple(
            Values(column.name, column.unit, column.merge, column.times_first, columns.decode_column(column.values, MOST_ROWS))
            for column in series.columns
        ),
    )


def _message_from_rows(rows: Rows) -> pb.Series:
    keys = rows.keys
    return pb.Series(
        labels=rows.labels,
        kind=rows.kind,
        known_keys=columns.encode_ascending(rows.known) if len(rows.known) else None,
        new_keys=pb.KeyTable(
            stacks=columns.encode_ascending(keys.stacks),
            seconds=columns.encode_column(keys.seconds),
            objects=columns.encode_column(keys.objects),
            threads=columns.encode_column(keys.threads),
            classes=columns.encode_column(keys.classes),
        )
        if len(keys.stacks)
        else None,
        columns=[
            pb.ValueColumn(
                name=column.name,
                unit=column.unit,
                merge=column.merge,
                times_first=column.times_first,
                values=columns.encode_column(column.values) if len(column.values) else None,
            )
            for column in rows.columns
        ],
    )
