# SPDX-License-Identifier: Apache-2.0
"""The border to the database: connections, transactions, and what their errors mean for a caller.

SQLite runs in WAL with synchronous=FULL, so that a commit survives the machine. A writing transaction opens with BEGIN IMMEDIATE: one
that reads first and writes then fails at once with BUSY_SNAPSHOT when another has written in between, whatever the busy timeout.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from server.errors import ConfigError, Overloaded, ServerError

MOST_CONNECTIONS = 32

_AGAIN = {
    sqlite3.SQLITE_BUSY: "the database is locked by another connection",
    sqlite3.SQLITE_LOCKED: "the database is locked by another connection",
    sqlite3.SQLITE_FULL: "the disk, or the space allowed to the database, is full",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_IOERR: "the disk reported an error",
    sqlite3.SQLITE_READONLY: "the database cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "the database could not be opened",
}
_FULL = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
"""What SQLite calls an I/O error of its shared memory file is, nearly always, that there is no room for it."""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def address_of_file(path: Path) -> sa.URL:
    """The address of an SQLite file of any name; in one that is text, a question mark ends the name."""
    return sa.URL.create("sqlite", database=str(path))


def open_engine(url: str | sa.URL, busy_timeout_s: float = 5.0) -> sa.Engine:
    """Connect to the database at an SQLAlchemy URL. Nothing is opened yet. Raises ConfigError for a URL that makes no sense."""
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() != "sqlite":
            return sa.create_engine(parsed, pool_size=8, max_overflow=MOST_CONNECTIONS - 8, pool_timeout=busy_timeout_s)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise ConfigError(f"the store's address {str(url).rsplit('@', maxsplit=1)[-1]!r} cannot be used: {error}") from error
    arguments = {"check_same_thread": False, "timeout": busy_timeout_s}
    engine = sa.create_engine(
        parsed, poolclass=QueuePool, pool_size=8, max_overflow=MOST_CONNECTIONS - 8, pool_timeout=busy_timeout_s, connect_args=arguments
    )
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that sees one moment from its first read on."""
    with _translated(), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that writes: durable when the block was left without an exception, undone otherwise."""
    with _translated(), engine.connect() as connection:
        writer = connection.execution_options(emberwatch_writes=True)
        with writer.begin():
            yield writer


class DirectoryLock:
    """Keeps a second server out of a data directory, for as long as this process lives or until `release`."""

    def __init__(self, directory: Path) -> None:
        """Raises ConfigError when another process holds it, or the directory cannot be written to."""
        path = directory / "lock"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"cannot write to {path}: {error.strerror}; choose another data directory") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise ConfigError(f"another server (process {holder}) uses {directory}: stop it, or choose another data directory") from error
        with contextlib.suppress(OSError):  # On a full disk the number is missing in the sentence another server would say.
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Let others in."""
        os.close(self._descriptor)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of the database into ours."""
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise Overloaded("too many questions at once: no connection to the database became free") from error
    except DBAPIError as error:
        raise _our_error(error) from error


def _our_error(error: DBAPIError) -> ServerError:
    extended = getattr(error.orig, "sqlite_errorcode", 0)
    code = sqlite3.SQLITE_FULL if extended in _FULL else extended & 0xFF
    if code in _AGAIN:
        return Overloaded(f"{_AGAIN[code]} ({error.orig})")
    if code in _DAMAGED:
        return ServerError(f"the database is damaged ({error.orig}): restore a backup, or move its file away to start anew")
    if error.connection_invalidated:
        return Overloaded(f"the connection to the database was lost ({error.orig})")
    return ServerError(f"the database refused a statement: {error.orig}")


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # sqlite3 must not open transactions of its own
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("emberwatch_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
