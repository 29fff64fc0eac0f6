# SPDX-License-Identifier: Apache-2.0
"""Batches of event kinds (waits, locks, system calls, connections), and a store that was filled with them through ingest.

Functions are written as plain names, root first, and travel as named JIT frames, so that no symbols are needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns, marks_pb2
from server.query.profile_query import ProfileQuery
from server.store.protocol import Store
from server.store.sql_store import SqlStore
from tests.server.query.fakes import FakeNamer
from tests.support.batches import START_UNIX_NS, WINDOW_NS, Tables, batch_from, push_of
from tests.support.pushes import decoded, new_store

BUCKETS = 32
Columns = Sequence[tuple[str, str, "pb.Merge"]]
"""(name, unit, merge) of each column of a kind."""


def _histogram(name: str) -> list[tuple[str, str, "pb.Merge"]]:
    return [(f"{name}_{bucket:02}", "count", pb.MERGE_HISTOGRAM) for bucket in range(BUCKETS)]


def _sums(unit: str, *names: str) -> list[tuple[str, str, "pb.Merge"]]:
    return [(name, unit, pb.MERGE_SUM) for name in names]


_TIMED = [*_sums("count", "count"), *_sums("ns", "ns"), ("max_ns", "ns", pb.MERGE_MAX)]
WAITS = ("lock", "disk", "net", "pipe", "poll", "sleep", "page", "child", "other")
KINDS: Mapping[str, Columns] = {
    "offcpu": [*_TIMED, *_sums("count", "observed"), *_sums("ns", "uninterruptible_ns")],
    "runqueue": [*_TIMED, *_sums("count", "observed"), *_histogram("bucket")],
    "time": [
        *_sums("count", "switches"),
        *_sums("ns", "cpu_ns", "runnable_ns", *(f"{wait}_ns" for wait in WAITS), "throttled_ns", "steal_ns"),
        ("threads", "count", pb.MERGE_MAX),
        *_sums("count", "observed"),
    ],
    "lock": [*_TIMED, *_histogram("bucket")],
    "syscall": [*_TIMED, *_histogram("bucket")],
    "syscall_stack": [*_sums("count", "count"), *_sums("ns", "ns"), *_sums("count", "observed")],
    "tcp": [
        *_sums("count", "connects", "accepts", "refused", "resets", "closes"),
        *_sums("bytes", "bytes_out", "bytes_in"),
        *_sums("count", "segments_out", "segments_in", "retransmits", "syn_retransmits"),
        *_sums("ns", "connect_ns", "lifetime_ns"),
        ("rtt_max_ns", "ns", pb.MERGE_MAX),
        *_histogram("rtt"),
        *_histogram("connect"),
    ],
}


@dataclass(frozen=True)
class EventRow:
    """One row; functions are root first. Columns that are not in `values` are 0."""

    values: Mapping[str, int]
    service: str = "shop"
    stack: Sequence[str] = ()
    second: Sequence[str] = ()
    object: str = ""
    thread: str = ""
    wait_class: str = ""


@dataclass
class Window:
    """Rows of one window of one host, by kind."""

    kinds: dict[str, list[EventRow]] = field(default_factory=dict)
    host: bytes = b"web-1"
    version: str = ""
    lost: Mapping[str, int] = field(default_factory=dict)
    """By kind: events that the maps had no room for."""


def bucket_of(value_ns: int) -> int:
    """Give the bucket of a value: below 1 us 0, [2^(i-1), 2^i) us i."""
    return min(BUCKETS - 1, (value_ns // 1000).bit_length())


def timed(*values_ns: int, histogram: str = "bucket") -> dict[str, int]:
    """Give count, ns, max_ns and buckets of events that took so long."""
    values = {"count": len(values_ns), "ns": sum(values_ns), "max_ns": max(values_ns, default=0)}
    for value_ns in values_ns:
        name = f"{histogram}_{bucket_of(value_ns):02}"
        values[name] = values.get(name, 0) + 1
    return values


def event_batch(window: Window) -> pb.FoldedBatch:
    """Build the batch of a window; accounts expect what was stored. Columns that are 0 in all rows are not sent."""
    tables = Tables()
    series, accounts = [], []
    for kind, rows in window.kinds.items():
        by_service: dict[str, list[EventRow]] = {}
        for row in rows:
            by_service.setdefault(row.service, []).append(row)
        series += [_series(tables, kind, window.version, some) for some in by_service.values()]
        first = KINDS[kind][0][0]
        stored = sum(row.values.get(first, 0) for row in rows)
        lost = window.lost.get(kind, 0)
        losses = [pb.Loss(reason=marks_pb2.LOSS_REASON_MAP_FULL, value=lost)] if lost else []
        accounts.append(pb.Account(kind=kind, expected=stored + lost, stored=stored, losses=losses))
    return batch_from(tables, series, accounts, window.host)


def event_store(directory: Path, windows: Iterable[tuple[int, Window]]) -> SqlStore:
    """A store with these windows, each with the number of seconds after START_UNIX_NS that it begins."""
    store = new_store(directory)
    for sequence, (after_s, window) in enumerate(windows, start=1):
        push_window(store, window, sequence, START_UNIX_NS + after_s * 10**9)
    return store


def push_window(store: Store, window: Window, sequence: int, start_unix_ns: int = START_UNIX_NS) -> None:
    """Store a window; each host is an agent of its own."""
    agent_id = window.host.ljust(16, b".")[:16]
    store.append(decoded(push_of(event_batch(window), sequence=sequence, start_unix_ns=start_unix_ns, agent_id=agent_id)))


def query_of(store: Store) -> ProfileQuery:
    """Questions to a store, asked when its first window had ended."""
    return ProfileQuery(store, FakeNamer(), lambda: START_UNIX_NS + WINDOW_NS)


def _series(tables: Tables, kind: str, version: str, rows: Sequence[EventRow]) -> pb.Series:
    labels = [pb.Label(name="service", value=rows[0].service.encode())]
    if version:
        labels.append(pb.Label(name="version", value=version.encode()))

    def node(functions: Sequence[str]) -> int:
        return tables.node([name if name.startswith("[") else f"jit:{name}" for name in reversed(functions)])

    def column(values: Sequence[int]) -> pb.Column:
        return columns.encode_column(list(values))

    return pb.Series(
        labels=labels,
        kind=kind,
        new_keys=pb.KeyTable(
            stacks=column([node(row.stack) for row in rows]),
            seconds=column([node(row.second) for row in rows]),
            objects=column([tables.string(row.object.encode()) for row in rows]),
            threads=column([tables.string(row.thread.encode()) for row in rows]),
            classes=column([tables.string(row.wait_class.encode()) for row in rows]),
        ),
        columns=[
            pb.ValueColumn(name=name, unit=unit, merge=merge, values=column([row.values.get(name, 0) for row in rows]))
            for at, (name, unit, merge) in enumerate(KINDS[kind])
            if at == 0 or any(row.values.get(name, 0) for row in rows)
        ],
    )
