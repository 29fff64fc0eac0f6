# SPDX-License-Identifier: Apache-2.0
"""Services, kinds and series by name, cached: looked up for each series of each push, made when they are new."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import sqlalchemy as sa

from server.store import tables
from server.store.known_kinds import in_order
from server.store.protocol import OVERFLOW_SERVICE, ColumnInfo, KindInfo, SeriesInfo
from server.store.push import ValueMerge
from server.store.unit import Unit

T = TypeVar("T")

ACTIVE_NS = 24 * 3600 * 10**9
_WRITE_AFTER_NS = 60 * 10**9
_RECOUNT_AFTER_NS = 60 * 10**9
_SWEEP_AFTER_NS = 3600 * 10**9
_MOST_SWEPT = 5000
"""Series that leave at once: whoever writes waits for it."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind and its row."""

    row_id: int
    info: KindInfo

    @property
    def maxima(self) -> frozenset[str]:
        """Columns that merge by max."""
        return frozenset(column.name for column in self.info.columns if column.merge is ValueMerge.MAX)


@dataclass(slots=True)
class SeriesRow:
    """A series; its times move with each window, and are written when they have moved by a minute."""

    series_id: int
    service_id: int
    service: str
    kind: str
    labels: Mapping[str, str]
    first_unix_ns: int
    last_unix_ns: int
    last_received_unix_ns: int
    written_last_unix_ns: int = 0
    written_received_unix_ns: int = 0

    @property
    def is_overflow(self) -> bool:
        """Stands for many series: its keys are not numbered for agents."""
        return self.service == OVERFLOW_SERVICE

    def info(self) -> SeriesInfo:
        """What readers see."""
        return SeriesInfo(self.series_id, self.service, self.kind, self.labels, self.first_unix_ns, self.last_unix_ns)


class Registry:
    """Written under the lock of a unit; read from any thread."""

    def __init__(self, connection: sa.Connection, most_active_series: int) -> None:
        self._most_active = most_active_series
        self.services: dict[str, int] = {}
        self.kinds: dict[str, KindRow] = {}
        self.series_by_id: dict[int, SeriesRow] = {}
        self._series: dict[tuple[str, str], SeriesRow] = {}
        self._active, self._counted_at_unix_ns = 0, 0
        self._swept_at_unix_ns = self._oldest_then_unix_ns = 0
        self.overflowed_windows = 0
        """Series of pushes that went to the overflow since the start."""
        self.refused: Counter[str] = Counter()
        """Of pushes since the start: "series" and "columns" that were left out (server.store.admission)."""
        self._load(connection)

    def find_series(self, kind: str, labels: Mapping[str, str], now_unix_ns: int) -> SeriesRow | None:
        """The series, or that of the overflow when it is new and there are too many; None when it is to be made."""
        found = self._series.get((kind, _labels_text(labels)))
        if found is not None or self._count_active(now_unix_ns) < self._most_active:
            return found
        return self._series.get((kind, _labels_text({"service": OVERFLOW_SERVICE})))

    def is_full(self, now_unix_ns: int) -> bool:
        """No further series may be made."""
        return self._count_active(now_unix_ns) >= self._most_active

    def make_series(self, unit: Unit, kind: str, labels: Mapping[str, str], moment: tuple[int, int]) -> SeriesRow:
        """Find or make a series; `moment` is (start of the window, time received)."""
        row = self.find_series(kind, labels, moment[1])
        if row is None:
            row = self._insert(unit, kind, {"service": OVERFLOW_SERVICE} if self.is_full(moment[1]) else labels, moment)
        self.overflowed_windows += row.is_overflow
        return row

    def service_id(self, unit: Unit, name: str) -> int:
        """Find or make a service."""
        found = self.services.get(name)
        if found is None:
            found = _insert_row(unit, tables.services, name=name, name_hash=_hash(name))
            self.services[name] = found
            unit.on_rollback.append(partial(_drop, self.services, name))
        return found

    def hold_kind(self, unit: Unit, name: str, columns: tuple[ColumnInfo, ...]) -> None:
        """Make a kind, or give it its columns; nothing is written when it has them."""
        found = self.kinds.get(name)
        if found is None:
            self._insert_kind(unit, name, columns)
        elif found.info.columns != columns:
            self._rewrite_kind(unit, found, columns)

    def touch(self, unit: Unit, rows: Sequence[SeriesRow], moment: tuple[int, int]) -> None:
        """Note that the series have a window of that start, received then."""
        start, received = moment
        stale = [
            {"row": row.series_id, "first": min(start, row.first_unix_ns), "last": max(start, row.last_unix_ns), "received": received}
            for row in rows
            if start < row.first_unix_ns
            or start - row.written_last_unix_ns >= _WRITE_AFTER_NS
            or received - row.written_received_unix_ns >= _WRITE_AFTER_NS
        ]
        if stale:
            table = tables.series
            times = {"first_unix_ns": "first", "last_unix_ns": "last", "last_received_unix_ns": "received"}
            update = table.update().where(table.c.id == sa.bindparam("row"))
            unit.connection.execute(update.values({column: sa.bindparam(name) for column, name in times.items()}), stale)
        written = {entry["row"] for entry in stale}
        unit.on_commit.append(lambda: _move_times(rows, moment, written))

    def is_sweep_due(self, now_unix_ns: int) -> bool:
        """Once an hour."""
        return abs(now_unix_ns - self._swept_at_unix_ns) >= _SWEEP_AFTER_NS

    def sweep(self, unit: Unit, oldest_unix_ns: int, now_unix_ns: int) -> None:
        """Forget series that ended more than a day before all there is and of which nothing came within a day.

        `oldest_unix_ns` is where what is stored begins; that of the sweep before counts too, since a reader may still see what was removed
        just now. Services keep their numbers, for the stacks that are numbered in them.
        """
        before = min(self._oldest_then_unix_ns, oldest_unix_ns, now_unix_ns) - ACTIVE_NS
        self._oldest_then_unix_ns, self._swept_at_unix_ns = oldest_unix_ns, now_unix_ns
        gone = [
            (key, row)
            for key, row in self._series.items()
            if row.last_unix_ns < before and row.last_received_unix_ns < now_unix_ns - ACTIVE_NS
        ][:_MOST_SWEPT]
        if gone:
            table = tables.series
            unit.connection.execute(table.delete().where(table.c.id == sa.bindparam("row")), [{"row": row.series_id} for _, row in gone])
            unit.on_commit.append(lambda: self._take_out(gone))

    def _take_out(self, gone: Sequence[tuple[tuple[str, str], SeriesRow]]) -> None:
        for key, row in gone:
            del self._series[key], self.series_by_id[row.series_id]
        self._counted_at_unix_ns = 0

    def _insert(self, unit: Unit, kind: str, labels: Mapping[str, str], moment: tuple[int, int]) -> SeriesRow:
        start, received = moment
        text, service = _labels_text(labels), labels["service"]
        service_id = self.service_id(unit, service)
        values = {"service_id": service_id, "kind_id": self.kinds[kind].row_id, "labels": text, "labels_hash": _hash(text)}
        times = {"first_unix_ns": start, "last_unix_ns": start, "last_received_unix_ns": received}
        row_id = _insert_row(unit, tables.series, **values, **times)
        row = SeriesRow(row_id, service_id, service, kind, dict(sorted(labels.items())), start, start, received, start, received)
        self._series[kind, text] = self.series_by_id[row_id] = row
        self._active += 1
        unit.on_rollback.append(lambda: self._forget(row, text))
        return row

    def _forget(self, row: SeriesRow, text: str) -> None:
        del self._series[row.kind, text], self.series_by_id[row.series_id]
        self._active -= 1

    def _insert_kind(self, unit: Unit, name: str, columns: tuple[ColumnInfo, ...]) -> None:
        row_id = _insert_row(unit, tables.kinds, name=name, columns=_columns_text(columns))
        self.kinds[name] = KindRow(row_id, KindInfo(name, columns))
        unit.on_rollback.append(partial(_drop, self.kinds, name))

    def _rewrite_kind(self, unit: Unit, old: KindRow, columns: tuple[ColumnInfo, ...]) -> None:
        table = tables.kinds
        unit.connection.execute(table.update().where(table.c.id == old.row_id).values(columns=_columns_text(columns)))
        self.kinds[old.info.name] = KindRow(old.row_id, KindInfo(old.info.name, columns))
        unit.on_rollback.append(lambda: self.kinds.update({old.info.name: old}))

    def _count_active(self, now_unix_ns: int) -> int:
        """Series active in the last day; counted at most once a minute, and only when there are many at all."""
        if len(self._series) < self._most_active:
            return len(self._series)
        if now_unix_ns - self._counted_at_unix_ns >= _RECOUNT_AFTER_NS:
            since = now_unix_ns - ACTIVE_NS
            self._active = sum(row.last_received_unix_ns >= since for row in self._series.values())
            self._counted_at_unix_ns = now_unix_ns
        return self._active

    def _load(self, connection: sa.Connection) -> None:
        self.services = {name: row_id for row_id, name in connection.execute(sa.select(tables.services.c.id, tables.services.c.name))}
        for row_id, name, columns in connection.execute(sa.select(tables.kinds.c.id, tables.kinds.c.name, tables.kinds.c.columns)):
            infos = tuple(ColumnInfo(column, unit, ValueMerge(merge)) for column, unit, merge in json.loads(columns))
            self.kinds[name] = KindRow(row_id, KindInfo(name, in_order(name, infos)))
        service_names = {row_id: name for name, row_id in self.services.items()}
        kind_names = {row.row_id: name for name, row in self.kinds.items()}
        for row in connection.execute(sa.select(tables.series)):
            times = (row.first_unix_ns, row.last_unix_ns, row.last_received_unix_ns, row.last_unix_ns, row.last_received_unix_ns)
            labels, kind = dict(json.loads(row.labels)), kind_names[row.kind_id]
            made = SeriesRow(row.id, row.service_id, service_names[row.service_id], kind, labels, *times)
            self._series[kind, row.labels] = self.series_by_id[row.id] = made


def _move_times(rows: Sequence[SeriesRow], moment: tuple[int, int], written: set[int]) -> None:
    start, received = moment
    for row in rows:
        row.first_unix_ns, row.last_unix_ns = min(start, row.first_unix_ns), max(start, row.last_unix_ns)
        row.last_received_unix_ns = received
        if row.series_id in written:
            row.written_last_unix_ns, row.written_received_unix_ns = row.last_unix_ns, received


def _drop(names: dict[str, T], name: str) -> None:
    del names[name]


def _insert_row(unit: Unit, table: sa.Table, **values: object) -> int:
    key = unit.connection.execute(table.insert(), values).inserted_primary_key
    assert key is not None
    return int(key[0])


def _labels_text(labels: Mapping[str, str]) -> str:
    return json.dumps(sorted(labels.items()), ensure_ascii=False, separators=(",", ":"))


def _columns_text(columns: Sequence[ColumnInfo]) -> str:
    return json.dumps([(column.name, column.unit, int(column.merge)) for column in columns])


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
