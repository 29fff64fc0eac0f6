# SPDX-License-Identifier: Apache-2.0
"""Makes blocks of ten minutes, an hour and a day, each from those of the next shorter length, all hosts in a column.

A minute that is written marks the units it lies in as not ready, in the same transaction; a unit that is over and has settled is made
anew. So a late window never leaves a block that lacks it, and what is asked before that is answered from minutes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from server.store import tables
from server.store.container import compress, decompress
from server.store.cover import LENGTHS_S, MINUTE_NS, SECOND_NS
from server.store.engine import reading
from server.store.index import SeriesIndex, index_bytes, index_from_bytes, join
from server.store.registry import KindRow, Registry
from server.store.rows import StoredRows, merge, rows_bytes_by_series
from server.store.sums import add_by_group, raise_by_group
from server.store.unit import UnitOfWork

SETTLE_NS = 5 * MINUTE_NS
MOST_UNITS = 8
"""Made in one step."""
_LATE_NS = 48 * 3600 * SECOND_NS
"""How late a window may come."""
_COMPRESSION = 3


@dataclass(frozen=True, slots=True)
class _Unit:
    """One rollup to be made."""

    row_id: int
    service_id: int
    kind: KindRow
    length_s: int
    start_unix_ns: int
    had_bytes: int
    """Of what it was before."""

    @property
    def until_unix_ns(self) -> int:
        return self.start_unix_ns + self.length_s * SECOND_NS


def mark(connection: sa.Connection, minutes: Iterable[tuple[int, int, int]]) -> None:
    """Say that minutes (service, kind, start) were written: what they lie in is not ready."""
    table = tables.rollups
    for service_id, kind_id, start in sorted(set(minutes)):
        for length_s in LENGTHS_S:
            unit = start // (length_s * SECOND_NS) * (length_s * SECOND_NS)
            key = {"service_id": service_id, "kind_id": kind_id, "length_s": length_s, "start_unix_ns": unit}
            where = sa.and_(*(table.c[name] == value for name, value in key.items()))
            if not connection.execute(table.update().where(where).values(is_ready=False)).rowcount:
                connection.execute(table.insert().values(**key, **_UNREADY))


_UNREADY = {"is_ready": False, "first_unix_ns": 0, "end_unix_ns": 0, "size_bytes": 0, "series_index": b"", "rows": b""}


def adopt(connection: sa.Connection) -> None:
    """Add the rows of minutes that a server without rollups wrote: all of them at first, afterwards those since the newest row."""
    rows, blocks = tables.rollups, tables.blocks.c
    newest = connection.execute(sa.select(sa.func.max(rows.c.start_unix_ns))).scalar()
    since = 0 if newest is None else int(newest) - _LATE_NS
    names = ["service_id", "kind_id", "length_s", "start_unix_ns", *_UNREADY]
    for length_s in LENGTHS_S:
        length_ns: sa.ColumnElement[int] = sa.literal_column(str(length_s * SECOND_NS))
        unit = blocks.start_unix_ns - blocks.start_unix_ns % length_ns
        is_there = sa.exists().where(
            rows.c.kind_id == blocks.kind_id,
            rows.c.service_id == blocks.service_id,
            rows.c.length_s == length_s,
            rows.c.start_unix_ns == unit,
        )
        constants = [sa.literal(value, rows.c[name].type).label(name) for name, value in _UNREADY.items()]
        lacking = sa.select(blocks.service_id, blocks.kind_id, sa.literal(length_s).label("length_s"), unit.label("start"), *constants)
        connection.execute(rows.insert().from_select(names, lacking.where(blocks.start_unix_ns >= since, ~is_there).distinct()))


def step(engine: sa.Engine, units: UnitOfWork, registry: Registry, now_unix_ns: int) -> int:
    """Make some of the rollups that are due, the shortest first; gives how many."""
    with reading(engine) as connection:
        due = _due(connection, registry, now_unix_ns)
        made = [(unit, *_made(connection, unit)) for unit in due]
    with units.begin() as writing:
        table = tables.rollups
        for unit, values, size_bytes in made:
            where = table.c.id == unit.row_id
            writing.connection.execute(table.delete().where(where) if values is None else table.update().where(where).values(**values))
            writing.grow(size_bytes - unit.had_bytes)
    return len(made)


def _due(connection: sa.Connection, registry: Registry, now_unix_ns: int) -> list[_Unit]:
    rows, kinds = tables.rollups.c, {kind.row_id: kind for kind in list(registry.kinds.values())}
    for length_s in reversed(LENGTHS_S):
        before = now_unix_ns - SETTLE_NS - length_s * SECOND_NS
        query = sa.select(rows.id, rows.service_id, rows.kind_id, rows.length_s, rows.start_unix_ns, rows.size_bytes).where(
            rows.is_ready.is_(False), rows.start_unix_ns <= before, rows.length_s == length_s
        )
        found = connection.execute(query.order_by(rows.start_unix_ns).limit(MOST_UNITS)).all()
        if found:
            return [_Unit(row.id, row.service_id, kinds[row.kind_id], *row[3:]) for row in found]
    return []


def _made(connection: sa.Connection, unit: _Unit) -> tuple[dict[str, object] | None, int]:
    """The columns of a rollup, and its size; None when all it was made of has been removed."""
    parts = _parts(connection, unit)
    if not parts:
        return None, 0
    index = index_bytes(_summed([index_from_bytes(part.series_index) for part in parts], unit))
    stored = [StoredRows(decompress(part.rows)) for part in parts]
    spans = _spans([(one, (part.first, part.end_unix_ns)) for one, part in zip(stored, parts, strict=True)])
    blob = compress(rows_bytes_by_series(merge([one.rows() for one in stored], unit.kind.maxima), spans), _COMPRESSION)
    size_bytes = len(index) + len(blob)
    columns = {
        "is_ready": True,
        "first_unix_ns": min(part.first for part in parts),
        "end_unix_ns": max(part.end_unix_ns for part in parts),
        "size_bytes": size_bytes,
        "series_index": index,
        "rows": blob,
    }
    return columns, size_bytes


def _parts(connection: sa.Connection, unit: _Unit) -> "Sequence[sa.Row[int, int, bytes, bytes]]":
    """The blocks of the next shorter length; they are ready, because shorter ones that are due are made before."""
    shorter_s = next((length_s for length_s in LENGTHS_S if length_s < unit.length_s), 60)
    table: sa.Table = tables.blocks if shorter_s == 60 else tables.rollups
    first = table.c.start_unix_ns if shorter_s == 60 else table.c.first_unix_ns
    query = sa.select(first.label("first"), table.c.end_unix_ns, table.c.series_index, table.c.rows).where(
        table.c.kind_id == unit.kind.row_id,
        table.c.service_id == unit.service_id,
        table.c.start_unix_ns >= unit.start_unix_ns,
        table.c.start_unix_ns < unit.until_unix_ns,
    )
    if shorter_s != 60:
        query = query.where(table.c.length_s == shorter_s)
    return connection.execute(query.order_by(table.c.start_unix_ns)).all()


def _spans(parts: "Sequence[tuple[StoredRows, tuple[int, int]]]") -> dict[int, tuple[int, int]]:
    """From when to when each series has windows, to the minute: what ran for half an hour of a day did not run for a day."""
    spans: dict[int, tuple[int, int]] = {}
    for stored, (first, end) in parts:
        ids, own = stored.series_ids(), stored.spans()
        firsts, ends = (column.tolist() for column in own) if own is not None else ([first] * ids.size, [end] * ids.size)
        for series_id, one_first, one_end in zip(ids.tolist(), firsts, ends, strict=True):
            had = spans.get(series_id, (one_first, one_end))
            spans[series_id] = min(had[0], one_first), max(had[1], one_end)
    return spans


def _summed(indexes: Sequence[SeriesIndex], unit: _Unit) -> SeriesIndex:
    """One entry a series, at the start of the unit."""
    all_of_it = join(indexes)
    series, groups = np.unique(all_of_it.series, return_inverse=True)
    sums = {}
    for name, values in all_of_it.sums.items():
        sums[name] = np.zeros(series.size, np.uint64)
        (raise_by_group if name in unit.kind.maxima else add_by_group)(sums[name], groups, values)
    none = np.zeros(series.size, np.int64)
    return SeriesIndex(series, np.full(series.size, unit.start_unix_ns), none, none, sums)
