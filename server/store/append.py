# SPDX-License-Identifier: Apache-2.0
"""Stores a push in one transaction: its key, its batch at level 0, new entries of dictionaries, its accounts.

Everything that can refuse a push is looked at before anything is written, so that a refusal stores nothing.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from server.store import tables
from server.store.admission import admit
from server.store.container import compress
from server.store.dictionaries import Dictionaries
from server.store.dictionary import PushTables, node_depths
from server.store.hosts import Agents, Binaries
from server.store.index import IndexEntry, index_bytes, index_of
from server.store.push import Appended, AppendStatus, DecodedPush, PushEnvelope, PushSeries
from server.store.registry import KindRow, Registry, SeriesRow
from server.store.rows import Rows, merge, rows_bytes
from server.store.unit import Unit

I64 = npt.NDArray[np.int64]

_LEVEL0_COMPRESSION = 1


@dataclass(frozen=True, slots=True)
class _Interned:
    """One series of the push with its keys resolved."""

    row: SeriesRow
    kind: KindRow
    rows: Rows
    new_key_ids: I64


class Appender:
    """Called under the lock of a unit only."""

    def __init__(self, dictionary_id: bytes, registry: Registry, agents: Agents, binaries: Binaries, dictionaries: Dictionaries) -> None:
        self._dictionary_id = dictionary_id
        self._registry = registry
        self._agents = agents
        self._binaries = binaries
        self._dictionaries = dictionaries

    def append(self, unit: Unit, push: DecodedPush) -> Appended:
        """See Store.append."""
        if self._is_stored(unit.connection, push.envelope):
            return Appended(AppendStatus.DUPLICATE, {}, {})
        admission = admit(push, {name: row.info.columns for name, row in self._registry.kinds.items()})
        push = admission.push
        unknown = self._unknown_keys(unit.connection, push)
        if unknown:
            return Appended(AppendStatus.UNKNOWN_KEYS, {}, {admission.places[index]: keys for index, keys in unknown.items()})
        for name, columns in admission.kinds.items():
            self._registry.hold_kind(unit, name, columns)
        agent_row_id = self._agents.see(unit, push)
        binary_rows = self._binaries.row_ids(unit, push.binaries[1:])
        interned = self._intern(unit, push, np.array([0, *binary_rows], np.int64))
        _insert_push_key(unit.connection, push.envelope, agent_row_id)
        _insert_batch(unit, push.envelope, agent_row_id, interned)
        self._insert_accounts(unit, push, agent_row_id)
        refused = {"series": admission.refused_series, "columns": admission.refused_columns}
        unit.on_commit.append(lambda: self._registry.refused.update(refused))
        placed = zip(admission.places, interned, strict=True)
        numbers = {place: one.new_key_ids for place, one in placed if one.new_key_ids.size and not one.row.is_overflow}
        return Appended(AppendStatus.STORED, numbers, {}, tuple(binary_rows))

    def _is_stored(self, connection: sa.Connection, envelope: PushEnvelope) -> bool:
        agent_row_id = self._agents.row_ids.get(envelope.agent_id)
        if agent_row_id is None:
            return False
        table = tables.push_keys.c
        query = sa.select(table.sequence).where(
            table.agent_row_id == agent_row_id, table.epoch_unix_ns == envelope.epoch_unix_ns, table.sequence == envelope.sequence
        )
        return connection.execute(query).first() is not None

    def _unknown_keys(self, connection: sa.Connection, push: DecodedPush) -> dict[int, I64]:
        """By index of the series: known keys that are not known here."""
        unknown: dict[int, I64] = {}
        is_ours = secrets.compare_digest(push.envelope.dictionary_id, self._dictionary_id)
        for index, one in enumerate(push.series):
            if one.known_keys.size:
                size = self._known_size(connection, push, one) if is_ours else 0
                missing = one.known_keys[one.known_keys >= size]
                if missing.size:
                    unknown[index] = missing
        return unknown

    def _known_size(self, connection: sa.Connection, push: DecodedPush, one: PushSeries) -> int:
        """How many keys of its service are numbered; 0 when its rows go to the overflow, which has numbers of its own."""
        now = push.envelope.received_unix_ns
        row = self._registry.find_series(one.kind, _labels(push, one), now)
        service_id = self._registry.services.get(one.service)
        goes_to_overflow = row.is_overflow if row is not None else self._registry.is_full(now)
        if service_id is None or goes_to_overflow:
            return 0
        return self._dictionaries.get(connection, service_id, one.service).sizes[2]

    def _intern(self, unit: Unit, push: DecodedPush, binary_rows: I64) -> list[_Interned]:
        depths = node_depths(push.stacks.parents)
        push_tables = PushTables(push.strings, binary_rows, push.frames, push.stacks, depths)
        moment = (push.envelope.start_unix_ns, push.envelope.received_unix_ns)
        before: dict[int, tuple[int, int, int, int]] = {}
        interned = []
        for one in push.series:
            kind = self._registry.kinds[one.kind]
            row = self._registry.make_series(unit, one.kind, _labels(push, one), moment)
            self._remember_sizes(unit, row, before)
            dictionary = self._dictionaries.get(unit.connection, row.service_id, row.service)
            new_keys = dictionary.intern(push_tables, one.new_keys) if one.new_keys.stacks.size else np.zeros(0, np.int64)
            interned.append(_Interned(row, kind, _rows(one, row.series_id, new_keys, kind), new_keys))
        for service_id, sizes in before.items():
            if self._dictionaries.has_grown(service_id, sizes):
                self._dictionaries.store_growth(unit, service_id, sizes)
        self._registry.touch(unit, [one.row for one in interned], moment)
        return interned

    def _remember_sizes(self, unit: Unit, row: SeriesRow, before: dict[int, tuple[int, int, int, int]]) -> None:
        """How large the dictionary was at first, to take back or to store what it gains."""
        if row.service_id in before:
            return
        dictionary = self._dictionaries.get(unit.connection, row.service_id, row.service)
        sizes = before[row.service_id] = dictionary.sizes
        if sum(sizes) == len(sizes):  # of a service that may itself be new and not stay
            unit.on_rollback.append(lambda: self._dictionaries.forget(row.service_id))
        unit.on_rollback.append(lambda: dictionary.roll_back(sizes))

    def _insert_accounts(self, unit: Unit, push: DecodedPush, agent_row_id: int) -> None:
        envelope = push.envelope
        for account in push.accounts:
            values = {
                "agent_row_id": agent_row_id,
                "kind_id": self._registry.kinds[account.kind].row_id,
                "start_unix_ns": envelope.start_unix_ns,
            }
            counts = {"expected": account.expected, "stored": account.stored, "idle": account.idle, "filtered": account.filtered}
            unit.connection.execute(tables.accounts.insert(), values | counts | {"end_unix_ns": envelope.end_unix_ns})
            losses = [values | {"reason": reason, "value": value} for reason, value in account.losses.items() if value]
            if losses:
                unit.connection.execute(tables.losses.insert(), losses)


def _labels(push: DecodedPush, one: PushSeries) -> dict[str, str]:
    return {**one.labels, "host": push.host.host}


def _rows(one: PushSeries, series_id: int, new_keys: I64, kind: KindRow) -> Rows:
    """Rows of one series, sorted; keys that are twice in a push become one row."""
    columns = {column.name: column.values for column in one.columns if column.values is not None}
    factors = {column.name: column.times_first for column in one.columns if column.values is None}
    return merge([Rows(np.concatenate([one.known_keys, new_keys]), series_id, columns, factors)], kind.maxima)


def _insert_push_key(connection: sa.Connection, envelope: PushEnvelope, agent_row_id: int) -> None:
    values = {"epoch_unix_ns": envelope.epoch_unix_ns, "sequence": envelope.sequence, "received_unix_ns": envelope.received_unix_ns}
    connection.execute(tables.push_keys.insert(), {"agent_row_id": agent_row_id, **values})


def _insert_batch(unit: Unit, envelope: PushEnvelope, agent_row_id: int, interned: Sequence[_Interned]) -> None:
    by_series: dict[int, list[_Interned]] = {}
    for one in interned:
        if one.rows.keys.size:
            by_series.setdefault(one.row.series_id, []).append(one)
    entries, pieces, offset = [], [], 0
    for series_id, group in by_series.items():
        maxima = group[0].kind.maxima
        rows = merge([one.rows for one in group], maxima)
        pieces.append(rows_bytes(rows))
        entries.append(IndexEntry(series_id, envelope.start_unix_ns, rows.sums(maxima), offset, len(pieces[-1])))
        offset += len(pieces[-1])
    index, blob = index_bytes(index_of(entries)), compress(b"".join(pieces), _LEVEL0_COMPRESSION)
    times = {"start_unix_ns": envelope.start_unix_ns, "end_unix_ns": envelope.end_unix_ns, "is_time_suspect": envelope.is_time_suspect}
    data: Mapping[str, object] = {"size_bytes": len(index) + len(blob), "series_index": index, "rows": blob}
    unit.grow(len(index) + len(blob))
    unit.connection.execute(tables.batches.insert(), {"agent_row_id": agent_row_id, "is_compacted": False, **times, **data})
