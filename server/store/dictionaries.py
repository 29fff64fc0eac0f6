# SPDX-License-Identifier: Apache-2.0
"""The dictionaries of all services: read from their chunks when first needed, then kept in memory and grown there."""

import os
from dataclasses import dataclass
from threading import Lock

import sqlalchemy as sa

from server.store import tables
from server.store.container import compress, decompress
from server.store.dictionary import GrowingDictionary
from server.store.protocol import ServiceDictionary
from server.store.unit import Unit

Sizes = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A stored chunk: its position, the sizes of the dictionary before it, and how many entries it holds."""

    position: int
    since: Sizes
    weight: int


@dataclass(slots=True)
class _Entry:
    dictionary: GrowingDictionary
    chunks: list[_Chunk]


class Dictionaries:
    """One writer, under the lock of a unit; read from any thread."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._lock = Lock()

    def get(self, connection: sa.Connection, service_id: int, service: str) -> GrowingDictionary:
        """The dictionary of a service, loaded when it is not there yet."""
        with self._lock:
            entry = self._entries.get(service_id)
            if entry is None:
                entry = self._entries[service_id] = _load(connection, service_id, service)
            return entry.dictionary

    @staticmethod
    def empty(service: str) -> ServiceDictionary:
        """What a service without any has."""
        return GrowingDictionary(service, 0).snapshot()

    def has_grown(self, service_id: int, since: Sizes) -> bool:
        """Whether there is anything to store."""
        return self._entries[service_id].dictionary.sizes != since

    def store_growth(self, unit: Unit, service_id: int, since: Sizes) -> None:
        """Write what the dictionary gained since `since`; shown to readers when the unit commits.

        The last chunks are written anew with it while they are less than twice as heavy: a start reads log2 of the entries chunks, and
        an entry is written about that often in all.
        """
        entry, table = self._entries[service_id], tables.dictionary_chunks
        now, kept = entry.dictionary.sizes, list(entry.chunks)
        while kept and kept[-1].weight < 2 * (sum(now) - sum(since)):
            since = kept.pop().since
        position = kept[-1].position + 1 if kept else 0
        if len(kept) < len(entry.chunks):
            unit.connection.execute(table.delete().where(table.c.service_id == service_id, table.c.position >= position))
        values = {"service_id": service_id, "position": position, "data": compress(entry.dictionary.chunk(since))}
        unit.connection.execute(table.insert(), values)
        kept.append(_Chunk(position, since, sum(now) - sum(since)))
        unit.on_commit.append(lambda: _grown(entry, kept))

    def forget(self, service_id: int) -> None:
        """Drop the dictionary of a service that was never committed."""
        with self._lock:
            self._entries.pop(service_id, None)


def _grown(entry: _Entry, chunks: list[_Chunk]) -> None:
    entry.chunks = chunks
    entry.dictionary.commit()


def _load(connection: sa.Connection, service_id: int, service: str) -> _Entry:
    dictionary = GrowingDictionary(service, int.from_bytes(os.urandom(8), "little"))
    table = tables.dictionary_chunks
    query = sa.select(table.c.position, table.c.data).where(table.c.service_id == service_id).order_by(table.c.position)
    entry = _Entry(dictionary, [])
    for position, data in connection.execute(query):
        since = dictionary.sizes
        dictionary.load(decompress(data))
        entry.chunks.append(_Chunk(position, since, sum(dictionary.sizes) - sum(since)))
    return entry
