# SPDX-License-Identifier: Apache-2.0
"""The store on an SQL database: opens it, holds its caches, and hands each call to the module that answers it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import sqlalchemy as sa

from server.errors import BadRequest
from server.store import accounts, catalog, compact, facts, notes, retire, rollup, select
from server.store.account_rollups import AccountRollups
from server.store.account_slots import Span
from server.store.append import Appender
from server.store.believed_time import BelievedTime
from server.store.dictionaries import Dictionaries
from server.store.documents import Documents
from server.store.engine import open_engine, reading
from server.store.hosts import Agents, Binaries
from server.store.protocol import (
    AccountSlot,
    AgentInfo,
    BinaryInfo,
    Compacted,
    DeployNote,
    KindInfo,
    Piece,
    Retired,
    RetireLimits,
    Selection,
    SeriesInfo,
    ServiceDictionary,
    ServiceInfo,
    Timeline,
)
from server.store.push import Appended, AppendStatus, DecodedPush
from server.store.registry import Registry
from server.store.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What one store takes."""

    most_active_series: int = 100_000
    busy_timeout_s: float = 5.0
    """How long a transaction waits for another process that has locked the database."""


class SqlStore:
    """A Store (server.store.protocol) on SQLite or PostgreSQL; the schema must be there (server.store.migrate)."""

    def __init__(self, url: str | sa.URL, limits: StoreLimits | None = None) -> None:
        limits = limits or StoreLimits()
        self._engine = open_engine(url, limits.busy_timeout_s)
        self._units = UnitOfWork(self._engine)
        self._upkeep = Lock()
        self._dictionaries = Dictionaries()
        self._time = BelievedTime()
        # Anew at each start: a backup that was restored gives numbers again that agents know as others.
        self._dictionary_id = os.urandom(16)
        with self._units.begin() as unit:
            rollup.adopt(unit.connection)
            self._account_rollups = AccountRollups(unit.connection)
        with reading(self._engine) as connection:
            self._registry = Registry(connection, limits.most_active_series)
            self._agents, self._binaries = Agents(connection), Binaries(connection)
        self._documents = Documents(self._engine, self._units)
        self._appender = Appender(self._dictionary_id, self._registry, self._agents, self._binaries, self._dictionaries)

    @property
    def dictionary_id(self) -> bytes:
        """See Store."""
        return self._dictionary_id

    @property
    def overflowed_windows(self) -> int:
        """Series of pushes that went to the overflow since the start."""
        return self._registry.overflowed_windows

    def refused(self, what: str) -> int:
        """How many "series" or "columns" of pushes were left out since the start (server.store.admission)."""
        return self._registry.refused[what]

    def append(self, push: DecodedPush) -> Appended:
        """See Store."""
        with self._units.begin() as unit:
            appended = self._appender.append(unit, push)
            if appended.status is AppendStatus.STORED:
                rows = [self._registry.kinds.get(account.kind) for account in push.accounts]
                kinds = [row.row_id for row in rows if row is not None]
                self._account_rollups.mark(unit.connection, kinds, push.envelope.start_unix_ns)
            return appended

    def select(self, selection: Selection) -> Iterator[Piece]:
        """See Store."""
        with reading(self._engine) as connection:
            scope = select.scope_of(self._registry, selection)
            if scope is not None:
                yield from select.pieces(connection, self._registry, scope)

    def kinds(self) -> list[KindInfo]:
        """See Store."""
        return sorted((row.info for row in list(self._registry.kinds.values())), key=lambda info: info.name)

    def series(self, kind: str, from_unix_ns: int, until_unix_ns: int) -> list[SeriesInfo]:
        """See Store."""
        return catalog.series(self._registry, kind, from_unix_ns, until_unix_ns)

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        """See Store."""
        if step_ns <= 0:
            raise BadRequest(f"a step of {step_ns} ns is not above 0")
        scope = select.scope_of(self._registry, selection)
        if scope is None:
            return select.empty_timeline(selection, step_ns)
        with reading(self._engine) as connection:
            return select.timeline(connection, self._registry, scope, step_ns)

    def accounts(self, kind: str, from_unix_ns: int, until_unix_ns: int, step_ns: int | None = None) -> list[AccountSlot]:
        """See Store."""
        row = self._registry.kinds.get(kind)
        if row is None or until_unix_ns <= from_unix_ns:
            return []
        step = step_ns or until_unix_ns - from_unix_ns
        with reading(self._engine) as connection:
            floor = facts.read_time(connection, facts.DATA_FLOOR)
            return accounts.slots(connection, Span(row.row_id, from_unix_ns, until_unix_ns, step, floor))

    def catalog(self, from_unix_ns: int, until_unix_ns: int) -> list[ServiceInfo]:
        """See Store."""
        return catalog.services(self._registry, from_unix_ns, until_unix_ns)

    def dictionary(self, service: str) -> ServiceDictionary:
        """See Store."""
        self._units.wait_published()
        service_id = self._registry.services.get(service)
        if service_id is None:
            return Dictionaries.empty(service)
        with reading(self._engine) as connection:
            return self._dictionaries.get(connection, service_id, service).snapshot()

    def binaries(self, row_ids: Sequence[int]) -> list[BinaryInfo]:
        """See Store."""
        return self._binaries.infos(row_ids)

    def agents(self) -> list[AgentInfo]:
        """See Store."""
        return self._agents.all()

    def deploy_notes(self) -> list[DeployNote]:
        """See Store."""
        with reading(self._engine) as connection:
            return notes.read(connection)

    def note_deploy(self, note: DeployNote, now_unix_ns: int) -> None:
        """See Store."""
        with self._units.begin() as unit:
            notes.write(unit.connection, note, now_unix_ns)

    @property
    def documents(self) -> Documents:
        """See Store."""
        return self._documents

    def compact(self, now_unix_ns: int) -> Compacted:
        """See Store."""
        with self._upkeep:
            done = compact.step(self._engine, self._units, self._registry, now_unix_ns)
            if not done.is_done:
                return done
            with reading(self._engine) as connection:
                believed_unix_ns = self._time.at(now_unix_ns, connection)
            return replace(done, is_done=not self._account_rollups.step(self._engine, self._units, believed_unix_ns))

    def retire(self, limits: RetireLimits, now_unix_ns: int) -> Retired:
        """See Store."""
        with self._upkeep:
            with reading(self._engine) as connection:
                self._units.size.count(connection)
            return self._retire(limits, now_unix_ns)

    def _retire(self, limits: RetireLimits, now_unix_ns: int) -> Retired:
        with self._units.begin() as unit:
            believed_unix_ns = self._time.at(now_unix_ns, unit.connection)
            self._account_rollups.lower(unit, believed_unix_ns)
            done = retire.step(unit, limits, believed_unix_ns)
            if done.is_done and self._registry.is_sweep_due(believed_unix_ns):
                self._registry.sweep(unit, retire.oldest(unit.connection, believed_unix_ns), believed_unix_ns)
            return done

    def close(self) -> None:
        """See Store."""
        self._engine.dispose()
