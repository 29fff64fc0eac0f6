# SPDX-License-Identifier: Apache-2.0
"""Documents: what the server keeps of deploys, events, views and shares. Written whole, read whole, found by key or by time.

A collection holds a bounded number of them: the oldest leave when a new one would be too many, except where people wrote them (views,
shares), which are refused instead. A document past its expiry is not there any more, wherever it still lies.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import zstandard

from server.errors import LimitExceeded, ServerError
from server.store import tables
from server.store.engine import reading
from server.store.unit import UnitOfWork

MOST_BODY_BYTES = 32 << 20
_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Collection:
    """A kind of document."""

    name: str
    most: int
    drops_oldest: bool = True
    """False: one too many is refused."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `body` is what JSON can say."""

    key: str
    at_unix_ns: int
    body: Mapping[str, Any]
    expires_unix_ns: int = 0
    """0 never."""


class Documents:
    """All of them. Safe to call from many threads; calls raise ServerError children only."""

    def __init__(self, engine: sa.Engine, units: UnitOfWork) -> None:
        self._engine = engine
        self._units = units

    def put(self, collection: Collection, document: Document, now_unix_ns: int) -> None:
        """Write it, in place of the one with its key. Raises LimitExceeded when it is too large, or one too many."""
        self.put_all([(collection, document)], now_unix_ns)

    def put_all(self, documents: Sequence[tuple[Collection, Document]], now_unix_ns: int) -> None:
        """Write all of them or none, as `put` does."""
        rows = [(collection, document.key, _values(document)) for collection, document in documents]
        with self._units.begin() as unit:
            unit.connection.execute(tables.documents.delete().where(_is_past(now_unix_ns)))
            for collection, key, values in rows:
                self._write(unit.connection, collection, key, values)

    def get(self, collection: Collection, key: str, now_unix_ns: int) -> Document | None:
        """None when there is none, or it has expired."""
        table = tables.documents.c
        where = sa.and_(table.collection == collection.name, table.key == key, ~_is_past(now_unix_ns))
        found = self._read(where, 1)
        return found[0] if found else None

    def newest(self, collection: Collection, now_unix_ns: int, *, since_unix_ns: int = 0, most: int | None = None) -> list[Document]:
        """Those of at least that time, the latest first."""
        table = tables.documents.c
        where = sa.and_(table.collection == collection.name, table.at_unix_ns >= since_unix_ns, ~_is_past(now_unix_ns))
        return self._read(where, collection.most if most is None else most)

    def drop(self, collection: Collection, key: str) -> bool:
        """Take it away; False when there was none."""
        table = tables.documents
        with self._units.begin() as unit:
            where = sa.and_(table.c.collection == collection.name, table.c.key == key)
            return bool(unit.connection.execute(table.delete().where(where)).rowcount)

    def _write(self, connection: sa.Connection, collection: Collection, key: str, values: Mapping[str, Any]) -> None:
        table = tables.documents
        where = sa.and_(table.c.collection == collection.name, table.c.key == key)
        if connection.execute(table.update().where(where).values(values)).rowcount:
            return
        self._make_room(connection, collection)
        connection.execute(table.insert().values(collection=collection.name, key=key, **values))

    def _read(self, where: sa.ColumnElement[bool], most: int) -> list[Document]:
        table = tables.documents.c
        query = sa.select(table.key, table.at_unix_ns, table.body, table.expires_unix_ns).where(where)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(table.at_unix_ns.desc(), table.id.desc()).limit(most)).all()
        return [Document(key, at, _body(blob), expires) for key, at, blob, expires in rows]

    def _make_room(self, connection: sa.Connection, collection: Collection) -> None:
        table = tables.documents
        is_in = table.c.collection == collection.name
        over = (connection.execute(sa.select(sa.func.count()).select_from(table).where(is_in)).scalar() or 0) + 1 - collection.most
        if over <= 0:
            return
        if not collection.drops_oldest:
            raise LimitExceeded(f"there are {collection.most} {collection.name} already: remove some first")
        oldest: Sequence[int] = list(
            connection.execute(sa.select(table.c.id).where(is_in).order_by(table.c.at_unix_ns, table.c.id).limit(over)).scalars()
        )
        connection.execute(table.delete().where(table.c.id.in_(oldest)))


def _is_past(now_unix_ns: int) -> sa.ColumnElement[bool]:
    expires = tables.documents.c.expires_unix_ns
    return sa.and_(expires > 0, expires <= now_unix_ns)


def _values(document: Document) -> dict[str, Any]:
    raw = json.dumps(document.body, separators=(",", ":")).encode()
    if len(raw) > MOST_BODY_BYTES:
        raise LimitExceeded(f"{len(raw)} bytes are too many to keep; at most {MOST_BODY_BYTES}")
    body = zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
    return {"at_unix_ns": document.at_unix_ns, "expires_unix_ns": document.expires_unix_ns, "body": body}


def _body(blob: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(zstandard.ZstdDecompressor().decompress(blob, max_output_size=MOST_BODY_BYTES))
    except (zstandard.ZstdError, ValueError) as error:
        raise ServerError(f"a document in the database is damaged ({error}): restore a backup") from error
    if not isinstance(body, dict):
        raise ServerError("a document in the database is damaged (no object): restore a backup")
    return body
