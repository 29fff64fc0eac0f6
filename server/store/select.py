# SPDX-License-Identifier: Apache-2.0
"""Reads rows and sums back: blocks where they lie wholly in a range, batches at its edges and where no block was made yet.

           from                                                     until
    batches │····│   blocks of whole minutes or longer      │········│  batches
            └────┴──────────────────────────────────────────┴────────┘
                   and everywhere: batches that are in no block yet

Which blocks: server.store.cover.

The same data never counts twice, because a batch is marked in the transaction that adds it to a block, and a question reads in one
transaction. Batches are kept for some hours; before `level0_floor` they are gone, and an edge minute counts whole where it starts inside.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from server.errors import LimitExceeded
from server.store import tables
from server.store.container import decompress
from server.store.cover import MINUTE_NS, SECOND_NS, Cover, Wanted, bounds, chunks, cover, runs, unready
from server.store.facts import DATA_FLOOR, LEVEL0_FLOOR, read_time
from server.store.index import SeriesIndex, index_from_bytes, index_of, join
from server.store.protocol import Piece, Selection, Timeline, Unsigned
from server.store.push import ValueMerge
from server.store.registry import KindRow, Registry
from server.store.rows import StoredRows
from server.store.sums import add_by_group, raise_by_group

MOST_CELLS = 10_000_000
_FETCH = 256
_MOST_NAMED = 1000
"""Services named in a statement; of more, all blocks are read and series chosen from them."""

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scope:
    """A selection with its names looked up."""

    kind: KindRow
    series_ids: I64 | None
    """Ascending; None for all of the kind."""
    services: Mapping[int, str] | None
    """Those of the series, by row; None for all, and for too many to name."""
    selection: Selection

    def chosen(self, series: I64) -> npt.NDArray[np.bool_]:
        """Which of these series are selected."""
        if self.series_ids is None:
            return np.ones(series.size, np.bool_)
        return np.isin(series, self.series_ids)


def scope_of(registry: Registry, selection: Selection) -> Scope | None:
    """None when there is nothing of the kind, or no series was selected."""
    kind = registry.kinds.get(selection.kind)
    if kind is None:
        return None
    if selection.series_ids is None:
        return Scope(kind, None, None, selection)
    rows = [registry.series_by_id[s] for s in selection.series_ids if s in registry.series_by_id]
    rows = [row for row in rows if row.kind == selection.kind]
    if not rows:
        return None
    ids = np.array(sorted(row.series_id for row in rows), np.int64)
    services = {row.service_id: row.service for row in rows}
    return Scope(kind, ids, services if len(services) <= _MOST_NAMED else None, selection)


def pieces(connection: sa.Connection, registry: Registry, scope: Scope) -> Iterator[Piece]:
    """See Store.select."""
    scope = _still_there(connection, scope)
    yield from _block_pieces(connection, registry, scope)
    yield from _batch_pieces(connection, registry, scope)


def timeline(connection: sa.Connection, registry: Registry, scope: Scope, step_ns: int) -> Timeline:
    """See Store.timeline."""
    selection = scope.selection
    slots = -(-(selection.until_unix_ns - selection.from_unix_ns) // step_ns)
    index = _entries(connection, registry, _still_there(connection, scope), (selection.from_unix_ns, step_ns))
    ids, rows = np.unique(index.series, return_inverse=True)
    if ids.size * slots > MOST_CELLS:
        raise LimitExceeded(f"{ids.size} series over {slots} steps are more than {MOST_CELLS} values: ask for longer steps or fewer series")
    cells = rows * slots + (index.starts_unix_ns - selection.from_unix_ns) // step_ns
    shape = (ids.size, slots)
    columns = {}
    for column in scope.kind.info.columns:
        if selection.columns is None or column.name in selection.columns:
            total = np.zeros(ids.size * slots, np.uint64)
            reduce = raise_by_group if column.merge is ValueMerge.MAX else add_by_group
            reduce(total, cells, index.sums.get(column.name, np.zeros(cells.size, np.uint64)))
            columns[column.name] = total.reshape(shape)
    has_data = np.zeros(ids.size * slots, np.bool_)
    has_data[cells] = True
    return Timeline(selection.from_unix_ns, step_ns, ids, columns, has_data.reshape(shape))


def empty_timeline(selection: Selection, step_ns: int) -> Timeline:
    """That of no series."""
    slots = -(-(selection.until_unix_ns - selection.from_unix_ns) // step_ns)
    return Timeline(selection.from_unix_ns, step_ns, np.zeros(0, np.int64), {}, np.zeros((0, slots), np.bool_))


def _still_there(connection: sa.Connection, scope: Scope) -> Scope:
    """Without what is being removed."""
    floor = read_time(connection, DATA_FLOOR)
    start = max(scope.selection.from_unix_ns, floor)
    return replace(scope, selection=replace(scope.selection, from_unix_ns=start, until_unix_ns=max(start, scope.selection.until_unix_ns)))


def _block_range(connection: sa.Connection, selection: Selection) -> tuple[int, int]:
    """Starts of the minutes taken from blocks: whole ones, and where batches are gone those that start in the range."""
    first = -(-selection.from_unix_ns // MINUTE_NS) * MINUTE_NS
    last = selection.until_unix_ns // MINUTE_NS * MINUTE_NS
    if last < selection.until_unix_ns and last < read_time(connection, LEVEL0_FLOOR):
        last += MINUTE_NS
    return first, max(first, last)


def _block_pieces(connection: sa.Connection, registry: Registry, scope: Scope) -> Iterator[Piece]:
    selection, minutes, rollups = scope.selection, tables.blocks.c, tables.rollups.c
    first, last = _block_range(connection, selection)
    wanted = Wanted(first, last, (first, last), longest_ns=selection.longest_ns)
    chosen = _cover(connection, scope, wanted)
    columns = (minutes.service_id, minutes.start_unix_ns, minutes.end_unix_ns, minutes.rows)
    longer = (rollups.service_id, rollups.first_unix_ns.label("start_unix_ns"), rollups.end_unix_ns, rollups.rows)
    names = {row_id: name for name, row_id in list(registry.services.items())}
    for query in _block_queries(scope, chosen, sa.select(*columns), sa.select(*longer)):
        for row in connection.execution_options(yield_per=_FETCH).execute(query):
            piece = _block_piece(scope, names[row.service_id], row)
            if piece.keys.size:
                yield piece


def _cover(connection: sa.Connection, scope: Scope, wanted: Wanted) -> Cover:
    """Cut what is wanted into blocks, as far as there are any."""
    oldest, past_newest = bounds(connection, scope.kind.row_id)
    first, last = wanted.minutes
    wanted = replace(wanted, minutes=(max(first, oldest), min(last, past_newest)))
    services = list(scope.services) if scope.services is not None else None
    return cover(wanted, unready(connection, scope.kind.row_id, services, wanted.minutes))


def _block_queries(scope: Scope, chosen: Cover, minutes: "sa.Select[Any]", rollups: "sa.Select[Any]") -> "Iterator[sa.Select[Any]]":
    """Statements that read the chosen blocks, each once; `minutes` and `rollups` say which columns."""
    for length_s, starts in (*chosen.rollups.items(), (60, chosen.minutes)):
        table, query = (tables.blocks, minutes) if length_s == 60 else (tables.rollups, rollups)
        query = query.where(table.c.kind_id == scope.kind.row_id)
        if scope.services is not None:
            query = query.where(table.c.service_id.in_(list(scope.services)))
        if length_s != 60:
            query = query.where(table.c.length_s == length_s)
        for some in chunks(table.c.start_unix_ns, runs(starts, length_s * SECOND_NS)):
            yield query.where(some)


def _block_piece(scope: Scope, service: str, row: "sa.Row[int, int, int, bytes]") -> Piece:
    start, end = row.start_unix_ns, row.end_unix_ns
    stored = StoredRows(decompress(row.rows))
    keys, ids, indices, sizes = stored.keys(), stored.series_ids(), stored.series(), stored.run_sizes()
    columns, multiples = _columns(stored, scope.selection)
    chosen = scope.chosen(ids)
    if indices is None:
        return Piece(service, keys if chosen[0] else keys[:0], int(ids[0]), columns, start, end, multiples=multiples)
    if not chosen.all():
        spans = stored.spans()
        if spans is not None and chosen.any():  # of the block, other series had windows for longer
            start, end = int(spans[0][chosen].min()), int(spans[1][chosen].max())
        which = np.flatnonzero(chosen[indices])
        keys, indices = keys[which], indices[which]
        columns = {name: values[which] for name, values in columns.items()}
        sizes = sizes[chosen] if sizes is not None else None
    series = ids[indices] if sizes is None else np.repeat(ids[chosen], sizes)
    return Piece(service, keys, series, columns, start, end, sizes, multiples)


def _columns(stored: StoredRows, selection: Selection) -> tuple[dict[str, Unsigned], dict[str, int]]:
    if selection.is_compact and selection.columns is not None:
        return stored.compact_columns(selection.columns)
    return stored.columns(selection.columns), {}


def _batch_pieces(connection: sa.Connection, registry: Registry, scope: Scope) -> Iterator[Piece]:
    table, selection = tables.batches.c, scope.selection
    query = sa.select(table.start_unix_ns, table.end_unix_ns, table.series_index, table.rows).where(_not_in_blocks(connection, selection))
    for start, end, index_blob, blob in connection.execution_options(yield_per=_FETCH).execute(query):
        index = index_from_bytes(index_blob, ())
        index = index.take(_of_kind(registry, scope, index.series))
        if not index.series.size:
            continue
        data = memoryview(decompress(blob))
        for series_id, offset, size in zip(index.series.tolist(), index.offsets.tolist(), index.sizes_bytes.tolist(), strict=True):
            stored = StoredRows(data[offset : offset + size])
            service = registry.series_by_id[series_id].service
            columns, multiples = _columns(stored, selection)
            yield Piece(service, stored.keys(), series_id, columns, start, end, multiples=multiples)


def _not_in_blocks(connection: sa.Connection, selection: Selection) -> sa.ColumnElement[bool]:
    """Batches of the range that no block taken holds."""
    table, floor = tables.batches.c, read_time(connection, LEVEL0_FLOOR)
    first, last = _block_range(connection, selection)
    start = table.start_unix_ns
    in_range = sa.and_(start >= selection.from_unix_ns, start < selection.until_unix_ns)
    at_edge = sa.and_(table.is_compacted.is_(True), start >= floor, sa.or_(start < first, start >= last))
    return sa.and_(in_range, sa.or_(table.is_compacted.is_(False), at_edge))


def _of_kind(registry: Registry, scope: Scope, series: I64) -> npt.NDArray[np.bool_]:
    if scope.series_ids is not None:
        return scope.chosen(series)
    ids, indices = np.unique(series, return_inverse=True)
    is_kind = [registry.series_by_id[one].kind == scope.selection.kind for one in ids.tolist()]
    return np.array(is_kind, np.bool_)[indices]


def _entries(connection: sa.Connection, registry: Registry, scope: Scope, slots: tuple[int, int]) -> SeriesIndex:
    """Entries of the index for all windows of the selection, each once: blocks, and batches that are in none.

    `slots` is where the first one starts and how long they are: what a rollup has lies in one of them.
    """
    selection, batches = scope.selection, tables.batches.c
    start, until = selection.from_unix_ns, selection.until_unix_ns
    minutes = start // MINUTE_NS * MINUTE_NS, -(-until // MINUTE_NS) * MINUTE_NS
    chosen = _cover(connection, scope, Wanted(start, until, minutes, slots))
    columns = sa.select(tables.blocks.c.series_index), sa.select(tables.rollups.c.series_index)
    in_batches = sa.select(batches.series_index).where(
        batches.is_compacted.is_(False), batches.start_unix_ns >= start, batches.start_unix_ns < until
    )
    queries = [*_block_queries(scope, chosen, *columns), in_batches]
    names = {column.name for column in scope.kind.info.columns if selection.columns is None or column.name in selection.columns}
    found = [index_from_bytes(blob, names) for query in queries for (blob,) in connection.execute(query)]
    if not found:
        return index_of([])
    index = join(found)
    in_range = (index.starts_unix_ns >= start) & (index.starts_unix_ns < until)
    index = index.take(in_range)
    return index.take(_of_kind(registry, scope, index.series))
