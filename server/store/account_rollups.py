# SPDX-License-Identifier: Apache-2.0
"""Rolls accounts up to units of ten minutes, an hour and a day, each in one row of all agents; windows older than 49 hours leave then.

Units are made in the order of time, once they are over and have settled. A window that comes later than that marks the units it lies in
as not ready, in its own transaction, and they are made anew; until then, questions are answered from shorter ones and from windows.
Windows come 48 hours late at most, so those of an older unit need not be kept: the sums of the unit are exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from server.store import tables
from server.store.cover import LENGTHS_S, MINUTE_NS, SECOND_NS
from server.store.engine import reading
from server.store.facts import ACCOUNTS_BUILT, ACCOUNTS_FLOOR, ACCOUNTS_SEEN, raise_time, read_time, write_time
from server.store.segments import (
    Losses,
    Segments,
    losses_of_rows,
    merged,
    merged_losses,
    segments_bytes,
    segments_from_bytes,
    segments_of_windows,
)
from server.store.unit import Unit, UnitOfWork

SETTLE_NS = 5 * MINUTE_NS
WINDOWS_KEPT_NS = 49 * 3600 * SECOND_NS
UNIT_S = LENGTHS_S[-1]
UNIT_NS = UNIT_S * SECOND_NS
MOST_ROWS = 5000
"""Windows removed in one step."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of time; of one kind, or of all when it is made for the first time."""

    length_s: int
    start_unix_ns: int
    kind_id: int | None = None

    @property
    def until_unix_ns(self) -> int:
        return self.start_unix_ns + self.length_s * SECOND_NS


class AccountRollups:
    """Keeps the units of a store true. Marks under the lock of the unit of work, makes them in upkeep."""

    def __init__(self, connection: sa.Connection) -> None:
        """Mark what a server without rollups added to units that were made."""
        self._built_unix_ns = read_time(connection, ACCOUNTS_BUILT)
        table = tables.accounts.c
        seen = 0 if _lower_seen(connection) else read_time(connection, ACCOUNTS_SEEN)  # All, when ids began anew.
        late = sa.select(table.kind_id, table.start_unix_ns).where(table.id > seen, table.start_unix_ns < self._built_unix_ns)
        for kind_id, start in connection.execute(late).all():
            self.mark(connection, [kind_id], start)

    def mark(self, connection: sa.Connection, kind_ids: Iterable[int], start_unix_ns: int) -> None:
        """A window with accounts of these kinds was added: units that were made without it are not ready.

        Before the floor it does not count any more: the unit could not be made of this one alone. Ingest refuses such windows.
        """
        if start_unix_ns < self._built_unix_ns and start_unix_ns >= read_time(connection, ACCOUNTS_FLOOR):
            for kind_id in kind_ids:
                _mark(connection, kind_id, start_unix_ns, LENGTHS_S)

    def lower(self, unit: Unit, now_unix_ns: int) -> None:
        """Bring floors that a wrong clock raised into the future down to now: windows from here on count again."""
        floor, now = read_time(unit.connection, ACCOUNTS_FLOOR), -(-now_unix_ns // UNIT_NS) * UNIT_NS
        if floor > now:
            write_time(unit.connection, ACCOUNTS_FLOOR, now)
        if self._built_unix_ns > now:
            write_time(unit.connection, ACCOUNTS_BUILT, now)
            unit.on_commit.append(lambda: setattr(self, "_built_unix_ns", now))

    def step(self, engine: sa.Engine, units: UnitOfWork, now_unix_ns: int) -> bool:
        """Make what is due of one unit of time, or remove some windows; False when nothing is left to do.

        `now_unix_ns` is the believed time.
        """
        with reading(engine) as connection:
            seen = _highest_id(connection)
            due = self._due(connection, now_unix_ns)
            made = _made(connection, due) if due is not None else {}
        with units.begin() as writing:
            connection = writing.connection
            if due is None:
                self._advance(writing, now_unix_ns)
                return self._drop_windows(connection, now_unix_ns)
            if _has_more(connection, due, seen):
                return True  # A window came while it was made: again, with that.
            for kind_id, blob in made.items():
                _write(connection, kind_id, due, blob)
            if not made:
                _forget(connection, due)
            if due.kind_id is None:
                self._raise_built(writing, due.until_unix_ns)
            raise_time(connection, ACCOUNTS_SEEN, seen)
        return True

    def _advance(self, unit: Unit, now_unix_ns: int) -> None:
        """Units without windows are made by saying so: longer ones that they lie in are whole then."""
        until, start = (now_unix_ns - SETTLE_NS) // UNIT_NS * UNIT_NS, tables.accounts.c.start_unix_ns
        if not self._built_unix_ns or until <= self._built_unix_ns:
            return
        between = sa.select(tables.accounts.c.id).where(start >= self._built_unix_ns, start < until).limit(1)
        if unit.connection.execute(between).first() is None:
            self._raise_built(unit, until)

    def _raise_built(self, unit: Unit, until_unix_ns: int) -> None:
        built = raise_time(unit.connection, ACCOUNTS_BUILT, until_unix_ns)
        unit.on_commit.append(lambda: setattr(self, "_built_unix_ns", built))

    def _due(self, connection: sa.Connection, now_unix_ns: int) -> _Unit | None:
        """The shortest units first: longer ones are made of them."""
        rows, before = tables.account_rollups.c, now_unix_ns - SETTLE_NS
        for length_s in reversed(LENGTHS_S):
            query = sa.select(rows.kind_id, rows.start_unix_ns).where(
                rows.is_ready.is_(False), rows.length_s == length_s, rows.start_unix_ns <= before - length_s * SECOND_NS
            )
            found = connection.execute(query.order_by(rows.start_unix_ns).limit(1)).first()
            if found is not None:
                return _Unit(length_s, found.start_unix_ns, found.kind_id)
            if length_s == UNIT_S and (new := self._new(connection, before)) is not None:
                return new
        return None

    def _new(self, connection: sa.Connection, before: int) -> _Unit | None:
        """The next unit with windows that was never made."""
        table = tables.accounts.c
        first = connection.execute(sa.select(sa.func.min(table.start_unix_ns)).where(table.start_unix_ns >= self._built_unix_ns)).scalar()
        if first is None or (start := int(first) // UNIT_NS * UNIT_NS) + UNIT_NS > before:
            return None
        return _Unit(UNIT_S, start)

    def _drop_windows(self, connection: sa.Connection, now_unix_ns: int) -> bool:
        """Remove some of the windows that are old and in a unit; all units are ready here."""
        oldest = min(self._built_unix_ns, (now_unix_ns - WINDOWS_KEPT_NS) // UNIT_NS * UNIT_NS)
        if oldest <= 0:
            return False
        floor, removed = raise_time(connection, ACCOUNTS_FLOOR, oldest), 0
        for table in (tables.accounts, tables.losses):
            some = sa.select(table.c.id).where(table.c.start_unix_ns < floor).limit(MOST_ROWS)
            removed += connection.execute(table.delete().where(table.c.id.in_(some))).rowcount
        _lower_seen(connection)
        return removed > 0


def _highest_id(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.max(tables.accounts.c.id))).scalar() or 0)


def _lower_seen(connection: sa.Connection) -> bool:
    """Have ids that will be given again not count as seen; False when there are none."""
    highest = _highest_id(connection)
    if highest >= read_time(connection, ACCOUNTS_SEEN):
        return False
    write_time(connection, ACCOUNTS_SEEN, highest)
    return True


def _mark(connection: sa.Connection, kind_id: int, start_unix_ns: int, lengths_s: Iterable[int]) -> None:
    table = tables.account_rollups
    for length_s in lengths_s:
        unit = start_unix_ns // (length_s * SECOND_NS) * (length_s * SECOND_NS)
        where = sa.and_(table.c.kind_id == kind_id, table.c.length_s == length_s, table.c.start_unix_ns == unit)
        if not connection.execute(table.update().where(where).values(is_ready=False)).rowcount:
            values = {"kind_id": kind_id, "length_s": length_s, "start_unix_ns": unit, "is_ready": False, "segments": b""}
            connection.execute(table.insert().values(**values))


def _made(connection: sa.Connection, unit: _Unit) -> dict[int, bytes]:
    """The blob of the unit by kind."""
    parts = _of_windows(connection, unit) if unit.length_s == UNIT_S else _of_units(connection, unit)
    made = {}
    for kind_id, found in parts.items():
        losses = merged_losses([lost for _, lost in found], unit.start_unix_ns)
        made[kind_id] = segments_bytes(merged([segments for segments, _ in found]), losses, unit.start_unix_ns)
    return made


_Parts = dict[int, list[tuple[Segments, Losses]]]


def _of_windows(connection: sa.Connection, unit: _Unit) -> _Parts:
    accounts, losses = tables.accounts.c, tables.losses.c
    windows, lost = dict[int, list[list[int]]](), dict[int, list[list[int]]]()
    columns = (accounts.agent_row_id, accounts.start_unix_ns, accounts.end_unix_ns, accounts.expected, accounts.stored)
    query = sa.select(accounts.kind_id, *columns, accounts.idle, accounts.filtered).where(*_inside(accounts, unit))
    for kind_id, *row in connection.execute(query.order_by(accounts.start_unix_ns, accounts.id)):
        windows.setdefault(kind_id, []).append(row)
    query = sa.select(losses.kind_id, losses.agent_row_id, losses.start_unix_ns, losses.reason, losses.value)
    for one in connection.execute(query.where(*_inside(losses, unit))):
        lost.setdefault(one.kind_id, []).append([one.agent_row_id, one.start_unix_ns, one.reason, one.value])
    return {kind: [(segments_of_windows(rows), losses_of_rows(lost.get(kind, [])))] for kind, rows in windows.items()}


def _of_units(connection: sa.Connection, unit: _Unit) -> _Parts:
    """From those of the next shorter length; they are ready, because shorter ones that are due are made before."""
    table, shorter_s = tables.account_rollups.c, max(length_s for length_s in LENGTHS_S if length_s < unit.length_s)
    query = sa.select(table.kind_id, table.start_unix_ns, table.segments).where(table.length_s == shorter_s, *_inside(table, unit))
    parts: _Parts = {}
    for kind_id, start, blob in connection.execute(query.order_by(table.start_unix_ns)):
        parts.setdefault(kind_id, []).append(segments_from_bytes(blob, start))
    return parts


def _inside(table: "sa.sql.base.ReadOnlyColumnCollection[str, sa.Column[int]]", unit: _Unit) -> list[sa.ColumnElement[bool]]:
    start = table.start_unix_ns
    inside: list[sa.ColumnElement[bool]] = [start >= unit.start_unix_ns, start < unit.until_unix_ns]
    return inside if unit.kind_id is None else [*inside, table.kind_id == unit.kind_id]


def _has_more(connection: sa.Connection, unit: _Unit, seen: int) -> bool:
    table = tables.accounts.c
    query = sa.select(table.id).where(table.id > seen, *_inside(table, unit)).limit(1)
    return connection.execute(query).first() is not None


def _write(connection: sa.Connection, kind_id: int, unit: _Unit, blob: bytes) -> None:
    """Put a unit in its place; longer ones of it are not ready then."""
    table = tables.account_rollups
    key = {"kind_id": kind_id, "length_s": unit.length_s, "start_unix_ns": unit.start_unix_ns}
    where = sa.and_(*(table.c[name] == value for name, value in key.items()))
    values = {"is_ready": True, "segments": blob}
    if not connection.execute(table.update().where(where).values(**values)).rowcount:
        connection.execute(table.insert().values(**key, **values))
    _mark(connection, kind_id, unit.start_unix_ns, [length_s for length_s in LENGTHS_S if length_s > unit.length_s])


def _forget(connection: sa.Connection, unit: _Unit) -> None:
    """All that the unit was made of has been removed."""
    table = tables.account_rollups
    connection.execute(
        table.delete().where(
            table.c.kind_id == unit.kind_id, table.c.length_s == unit.length_s, table.c.start_unix_ns == unit.start_unix_ns
        )
    )
