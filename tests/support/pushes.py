# SPDX-License-Identifier: Apache-2.0
"""Stores on real SQLite files, and pushes for them: rows of text in, totals out."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from emberwatch.v1 import collector_pb2 as collector
from server.ingest.decode import decode_push
from server.ingest.limits import IngestLimits
from server.query.merge import key_weights
from server.store.believed_time import BelievedTime
from server.store.migrate import migrate
from server.store.protocol import Selection, Store
from server.store.push import DecodedPush
from server.store.sql_store import SqlStore, StoreLimits
from tests.support.batches import START_UNIX_NS, WINDOW_NS, Row, batch_of, push_of

SECOND_NS = 10**9
MINUTE_NS = 60 * SECOND_NS
MINUTE_UNIX_NS = START_UNIX_NS // MINUTE_NS * MINUTE_NS
"""Start of the minute that START_UNIX_NS lies in."""
ALL_TIME = (0, 2**62)
STACK = ["app+0x10", "app+0x20"]


def new_store(directory: Path, limits: StoreLimits | None = None) -> SqlStore:
    """Open the store in `directory`, made when it is not there."""
    file = directory / "store.db"
    if not file.exists():
        file.write_bytes(_empty_store())
    return SqlStore(url_of(directory), limits)


@cache
def _empty_store() -> bytes:
    """A file with all tables and no row: migrations are run once, not for each of some hundred stores."""
    with TemporaryDirectory() as directory:
        migrate(url_of(Path(directory)))
        return (Path(directory) / "store.db").read_bytes()


def url_of(directory: Path) -> str:
    """Where `new_store` puts it."""
    return f"sqlite:///{directory / 'store.db'}"


def decoded(request: collector.PushRequest, now_unix_ns: int | None = None) -> DecodedPush:
    """Decode a push as ingest does, by default at the end of its window."""
    now = request.window_start_unix_ns + WINDOW_NS if now_unix_ns is None else now_unix_ns
    return decode_push(request, now, IngestLimits())


def push_rows(store: Store, rows: Iterable[Row], sequence: int, start_unix_ns: int = START_UNIX_NS, *, host: bytes = b"web-1") -> None:
    """Store one window of these rows; each host is an agent of its own."""
    request = push_of(batch_of(rows, host=host), sequence=sequence, start_unix_ns=start_unix_ns, agent_id=host.ljust(16, b"."))
    store.append(decoded(request))


def totals(store: Store, kind: str = "cpu", column: str = "samples", span: tuple[int, int] = ALL_TIME) -> Mapping[str, int]:
    """Total of a column by service."""
    merged = key_weights(store, Selection(kind, *span), (column,))
    return {service: weights.totals[column] for service, weights in merged.services.items()}


def timeline_total(store: Store, column: str = "samples", span: tuple[int, int] = (MINUTE_UNIX_NS, MINUTE_UNIX_NS + 10 * MINUTE_NS)) -> int:
    """The same over all services, from the index alone."""
    columns = store.timeline(Selection("cpu", *span), SECOND_NS * 10).columns
    return int(columns[column].sum()) if column in columns else 0


def leap(store: SqlStore, now_unix_ns: int) -> None:
    """Have the store believe a time at once, however far it is from its newest window (server.store.believed_time)."""
    store._time = BelievedTime(now_unix_ns)


def compact_all(store: SqlStore, now_unix_ns: int) -> int:
    """Compact until nothing is left; gives how many batches went into blocks."""
    batches = 0
    leap(store, now_unix_ns)
    while not (step := store.compact(now_unix_ns)).is_done:
        batches += step.batches
    return batches
