# SPDX-License-Identifier: Apache-2.0
"""Removes what is over the limits of age and bytes, oldest first, some rows a step.

First go batches that are in blocks, then whatever is past its age, then the oldest blocks while there are too many bytes. A floor rises
only over what is there to be removed; one that lies in the future, left by a clock that was wrong, comes down.
"""

import sqlalchemy as sa

from server.store import tables
from server.store.cover import MINUTE_NS
from server.store.data_size import DATA
from server.store.facts import DATA_FLOOR, LEVEL0_FLOOR, raise_time, read_time, write_time
from server.store.protocol import Retired, RetireLimits
from server.store.unit import Unit

MOST_ROWS = 500
_SECOND_NS = 10**9


def step(unit: Unit, limits: RetireLimits, now_unix_ns: int) -> Retired:
    """See Store.retire. `now_unix_ns` is the believed time."""
    connection = unit.connection
    _lower_floors(connection, now_unix_ns)
    gone = [_drop_level0(connection, now_unix_ns - limits.keep_level0_s * _SECOND_NS)] if limits.keep_level0_s else []
    if limits.keep_s:
        gone += _drop_old(connection, now_unix_ns - limits.keep_s * _SECOND_NS)
    if limits.keep_bytes:
        gone.append(_drop_over_bytes(connection, unit.size.total() - sum(one.size_bytes for one in gone) - limits.keep_bytes))
    if limits.keep_push_keys_s:
        _delete(connection, tables.push_keys, tables.push_keys.c.received_unix_ns < now_unix_ns - limits.keep_push_keys_s * _SECOND_NS)
    freed = sum(one.size_bytes for one in gone)
    unit.grow(-freed)
    return Retired(
        batches=sum(one.batches for one in gone),
        blocks=sum(one.blocks for one in gone),
        size_bytes=freed,
        is_done=all(one.is_done for one in gone),
    )


def oldest(connection: sa.Connection, now_unix_ns: int) -> int:
    """Where what is stored begins; now when there is nothing."""
    starts = [connection.execute(sa.select(sa.func.min(table.c.start_unix_ns))).scalar() for table in DATA]
    return min((int(start) for start in starts if start is not None), default=now_unix_ns)


def _lower_floors(connection: sa.Connection, now_unix_ns: int) -> None:
    """What is stored from now on must be seen. What lies before now may be gone in part: there, minutes stay whole in blocks."""
    for name, floor in ((DATA_FLOOR, now_unix_ns // MINUTE_NS * MINUTE_NS), (LEVEL0_FLOOR, -(-now_unix_ns // MINUTE_NS) * MINUTE_NS)):
        if read_time(connection, name) > max(floor, now_unix_ns):
            write_time(connection, name, floor)


def _drop_level0(connection: sa.Connection, before_unix_ns: int) -> Retired:
    """Batches of whole minutes that are in blocks: from here on the edges of ranges are taken from blocks there."""
    table = tables.batches.c
    floor = max(before_unix_ns // MINUTE_NS * MINUTE_NS, read_time(connection, LEVEL0_FLOOR))
    where = sa.and_(table.is_compacted.is_(True), table.start_unix_ns < floor)
    if connection.execute(sa.select(table.id).where(where).limit(1)).first() is None:
        return Retired()
    raise_time(connection, LEVEL0_FLOOR, floor)
    return _drop_oldest(connection, tables.batches, where)


def _drop_old(connection: sa.Connection, before_unix_ns: int) -> list[Retired]:
    """Whole minutes past their age."""
    before = max(before_unix_ns // MINUTE_NS * MINUTE_NS, read_time(connection, DATA_FLOOR))
    for table in (tables.accounts, tables.losses, tables.account_rollups):
        _delete(connection, table, table.c.start_unix_ns < before)
    if not any(connection.execute(sa.select(table.c.id).where(table.c.start_unix_ns < before).limit(1)).first() for table in DATA):
        return []
    raise_time(connection, DATA_FLOOR, before)
    return [_drop_oldest(connection, table, table.c.start_unix_ns < before) for table in DATA]


def _drop_over_bytes(connection: sa.Connection, over: int) -> Retired:
    """The oldest minutes, until the rest fits."""
    if over <= 0:
        return Retired()
    table = tables.blocks.c
    oldest = connection.execute(sa.select(table.start_unix_ns, table.size_bytes).order_by(table.start_unix_ns).limit(MOST_ROWS)).all()
    until, freed = 0, 0
    for start, size in oldest:
        if freed >= over and start >= until:
            break
        until, freed = start + MINUTE_NS, freed + size
    until = raise_time(connection, DATA_FLOOR, until)
    dropped = [_drop_oldest(connection, one, one.c.start_unix_ns < until) for one in DATA]
    freed = sum(one.size_bytes for one in dropped)
    blocks, batches = (sum(getattr(one, name) for one in dropped) for name in ("blocks", "batches"))
    return Retired(batches, blocks, freed, is_done=freed >= over or not (blocks or batches))


def _drop_oldest(connection: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> Retired:
    """At most MOST_ROWS of a table of data."""
    query = sa.select(table.c.id, table.c.size_bytes).where(where).order_by(table.c.start_unix_ns, table.c.id).limit(MOST_ROWS)
    rows = connection.execute(query).all()
    connection.execute(table.delete().where(table.c.id.in_([row.id for row in rows])))
    counts = {tables.batches.name: 0, tables.blocks.name: 0} | {table.name: len(rows)}
    return Retired(counts["batches"], counts["blocks"], sum(row.size_bytes for row in rows), is_done=len(rows) < MOST_ROWS)


def _delete(connection: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> None:
    """Some rows of a table without bytes worth counting; the rest in the next steps."""
    key = list(table.primary_key.columns)
    some = sa.select(*key).where(where).limit(4 * MOST_ROWS)
    connection.execute(table.delete().where(sa.tuple_(*key).in_(some)))
