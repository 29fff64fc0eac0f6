# SPDX-License-Identifier: Apache-2.0
"""Turns batches (level 0) into blocks (level 1): one a service, kind and minute, with all series as a column.

A step takes some batches of the oldest minute that ended two minutes ago, merges their rows with the blocks of that minute that are
there already, and marks the batches in the same transaction; when no batch is due it makes longer blocks (server.store.rollup). The work
is done outside of the writer's lock: only steps of upkeep change blocks or marks, and they run one at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from server.store import rollup, tables
from server.store.container import compress, decompress, unpacked_bytes
from server.store.cover import MINUTE_NS
from server.store.engine import reading
from server.store.index import IndexEntry, SeriesIndex, index_bytes, index_from_bytes, index_of, join
from server.store.protocol import Compacted
from server.store.registry import KindRow, Registry
from server.store.rows import Rows, StoredRows, merge, rows_bytes
from server.store.unit import Unit, UnitOfWork

SETTLE_NS = 2 * MINUTE_NS
MOST_BATCHES = 256
MOST_BYTES = 256 << 20
"""Of rows as they are unpacked, in one step: a window may have 64 MiB of them."""
_COMPRESSION = 3


@dataclass(slots=True)
class _Block:
    """What one block is made of."""

    service_id: int
    kind: KindRow
    start_unix_ns: int
    end_unix_ns: int = 0
    parts: list[Rows] = field(default_factory=list)
    entries: list[IndexEntry] = field(default_factory=list)
    indexes: list[SeriesIndex] = field(default_factory=list)
    row_id: int | None = None
    """Of the block that is there already."""
    had_bytes: int = 0
    """Size of that."""


def step(engine: sa.Engine, units: UnitOfWork, registry: Registry, now_unix_ns: int) -> Compacted:
    """See Store.compact; accounts are not rolled up here."""
    before = (now_unix_ns - SETTLE_NS) // MINUTE_NS * MINUTE_NS
    with reading(engine) as connection:
        minute = _oldest_minute(connection, before)
        batches = _batches(connection, minute) if minute is not None else ()
        blocks = _gather(registry, minute, batches) if minute is not None else []
        for block in blocks:
            _add_existing(connection, block)
    if minute is None:
        made = rollup.step(engine, units, registry, now_unix_ns)
        return Compacted(0, made, is_done=not made)
    packed = [_packed(block) for block in blocks]
    with units.begin() as unit:
        rollup.mark(unit.connection, ((block.service_id, block.kind.row_id, block.start_unix_ns) for block in blocks))
        _write(unit, packed, [batch.id for batch in batches])
        unit.grow(sum(grown for _, _, grown in packed))
    return Compacted(len(batches), len(blocks), is_done=False)


def _oldest_minute(connection: sa.Connection, before_unix_ns: int) -> int | None:
    table = tables.batches.c
    oldest = sa.select(sa.func.min(table.start_unix_ns)).where(table.is_compacted.is_(False), table.start_unix_ns < before_unix_ns)
    found = connection.execute(oldest).scalar()
    return None if found is None else int(found) // MINUTE_NS * MINUTE_NS


def _batches(connection: sa.Connection, minute: int) -> "Sequence[sa.Row[int, int, int, bytes, bytes]]":
    table = tables.batches.c
    query = sa.select(table.id, table.start_unix_ns, table.end_unix_ns, table.series_index, table.rows).where(
        table.is_compacted.is_(False), table.start_unix_ns >= minute, table.start_unix_ns < minute + MINUTE_NS
    )
    found: list[sa.Row[int, int, int, bytes, bytes]] = []
    size_bytes = 0
    for batch in connection.execution_options(yield_per=1).execute(query.order_by(table.start_unix_ns, table.id).limit(MOST_BATCHES)):
        size_bytes += unpacked_bytes(batch.rows)
        if found and size_bytes > MOST_BYTES:
            break
        found.append(batch)
    return found


def _gather(registry: Registry, minute: int, batches: "Sequence[sa.Row[int, int, int, bytes, bytes]]") -> list[_Block]:
    """Rows of the batches by service and kind."""
    blocks: dict[tuple[int, int], _Block] = {}
    for batch in batches:
        index, data = index_from_bytes(batch.series_index), memoryview(decompress(batch.rows))
        places = zip(index.series.tolist(), index.offsets.tolist(), index.sizes_bytes.tolist(), strict=True)
        for number, (series_id, offset, size) in enumerate(places):
            row = registry.series_by_id[series_id]
            kind = registry.kinds[row.kind]
            block = blocks.setdefault((row.service_id, kind.row_id), _Block(row.service_id, kind, minute))
            block.end_unix_ns = max(block.end_unix_ns, batch.end_unix_ns)
            block.parts.append(StoredRows(data[offset : offset + size]).rows())
            names = [column.name for column in kind.info.columns if column.name in index.sums]
            sums = {name: int(index.sums[name][number]) for name in names}
            block.entries.append(IndexEntry(series_id, batch.start_unix_ns, {name: value for name, value in sums.items() if value}))
    return list(blocks.values())


def _add_existing(connection: sa.Connection, block: _Block) -> None:
    table = tables.blocks.c
    key = (table.kind_id == block.kind.row_id, table.service_id == block.service_id, table.start_unix_ns == block.start_unix_ns)
    found = connection.execute(sa.select(table.id, table.end_unix_ns, table.size_bytes, table.series_index, table.rows).where(*key)).first()
    if found is not None:
        block.row_id, block.had_bytes = found.id, found.size_bytes
        block.end_unix_ns = max(block.end_unix_ns, found.end_unix_ns)
        block.parts.append(StoredRows(decompress(found.rows)).rows())
        block.indexes.append(index_from_bytes(found.series_index))


_Packed = tuple[int | None, dict[str, object], int]


def _packed(block: _Block) -> _Packed:
    """Row id of the block when it is there already, its row, and by how many bytes it grew."""
    index = index_bytes(join([*block.indexes, index_of(block.entries)]))
    blob = compress(rows_bytes(merge(block.parts, block.kind.maxima)), _COMPRESSION)
    times = {"start_unix_ns": block.start_unix_ns, "end_unix_ns": block.end_unix_ns}
    size_bytes = len(index) + len(blob)
    data = {"size_bytes": size_bytes, "series_index": index, "rows": blob}
    row = {"service_id": block.service_id, "kind_id": block.kind.row_id, **times, **data}
    return block.row_id, row, size_bytes - block.had_bytes


def _write(unit: Unit, packed: Sequence[_Packed], batch_ids: Sequence[int]) -> None:
    for row_id, values, _ in packed:
        if row_id is None:
            unit.connection.execute(tables.blocks.insert().values(**values))
        else:
            unit.connection.execute(tables.blocks.update().where(tables.blocks.c.id == row_id).values(**values))
    unit.connection.execute(tables.batches.update().where(tables.batches.c.id.in_(batch_ids)).values(is_compacted=True))
