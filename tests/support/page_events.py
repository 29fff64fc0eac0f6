# SPDX-License-Identifier: Apache-2.0
"""A small fleet for the page's tests: waits, locks, system calls and connections of a few services, answered by the real server.

Rows are drawn from a seed and pass through ingest, store and query, so that the page is shown what the server says.
"""

from __future__ import annotations

import atexit
import math
import random
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from flask.testing import FlaskClient

from server.http.app import create_app
from server.http.services import AppServices
from server.profile.names import CodeKind
from server.query.frame_names import Binaries
from server.query.profile_query import ProfileQuery
from tests.server.query.fakes import FakeNamer
from tests.support.event_batches import EventRow, Window, bucket_of, push_window
from tests.support.pushes import compact_all, new_store

WINDOW_S = 10
WINDOWS = 90
"""A quarter of an hour."""
QUIET_EVERY = 9
"""Windows of web-1 for each of web-2, which has connections alone."""
MS = 10**6
SECOND = 10**9
_MAKING = Lock()

_KERNEL = {"futex_wait_queue", "__futex_wait", "ep_poll", "io_schedule", "sk_wait_data", "pipe_read", "do_nanosleep", "schedule"}
_LIBC = {"pthread_mutex_lock", "__lll_lock_wait", "epoll_wait", "fsync", "recv", "read", "clock_nanosleep", "start_thread"}


class EventNamer(FakeNamer):
    """Gives kernel and libc functions their colour and binary."""

    def names(self, frames: Any, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> Any:
        named = super().names(frames, binaries, strings, service)
        table = named.functions
        for at, name in enumerate(table.names):
            if name in _KERNEL:
                table.codes[at], table.binaries[at] = int(CodeKind.KERNEL), "[kernel]"
            elif name in _LIBC:
                table.binaries[at] = "libc.so.6"
            elif "::" in name:
                table.codes[at], table.binaries[at] = int(CodeKind.CPP), service
        return named


def event_client(now_s: int) -> FlaskClient:
    """A client of a server that holds the last quarter of an hour before `now_s`; made once for a run of tests, whoever asks first."""
    with _MAKING:
        return _made(now_s)


@cache
def _made(now_s: int) -> FlaskClient:
    directory = Path(tempfile.mkdtemp(prefix="page-events-"))
    store = new_store(directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(store.close)
    start_s = now_s // WINDOW_S * WINDOW_S - WINDOWS * WINDOW_S
    for at in range(WINDOWS):
        push_window(store, Window(_rows(at, "web-1"), b"web-1", "2.4.1"), at + 1, (start_s + at * WINDOW_S) * SECOND)
        if at % QUIET_EVERY == 0:
            rows = {"tcp": list(_peers(random.Random(at), 0.2, False, "web-2"))}
            push_window(store, Window(rows, b"web-2", "2.4.1"), at + 1, (start_s + at * WINDOW_S) * SECOND)
    compact_all(store, now_s * SECOND)
    query = ProfileQuery(store, EventNamer(), lambda: now_s * SECOND)
    return create_app(AppServices(query=query, page_files=Path("/nonexistent"))).test_client()


def _rows(at: int, host: str) -> dict[str, list[EventRow]]:
    chance = random.Random(f"{at} {host}")
    busy = 1 + 0.5 * math.sin(at / 9) + 0.25 * math.sin(at / 2.3)
    is_bad = 52 <= at < 64 and host == "web-1"
    return {
        "time": [_time(chance, busy, is_bad), _time_of_pool()],
        "offcpu": [*_waits(chance, busy, is_bad), _pool()],
        "runqueue": list(_run_queue(chance, busy, is_bad)),
        "lock": list(_locks(chance, busy, is_bad)),
        "syscall": list(_calls(chance, busy, is_bad)),
        "syscall_stack": list(_call_stacks(chance, busy)),
        "tcp": list(_peers(chance, busy, is_bad, host)),
    }


def _spread(chance: random.Random, middle_ns: float, count: int, width: float = 0.9) -> dict[str, int]:
    """Count, sum, largest and buckets of so many events around a time: 24 are drawn, each stands for its part."""
    values = {"count": count, "ns": 0, "max_ns": 0}
    drawn = [chance.lognormvariate(math.log(middle_ns), width) for _ in range(24)]
    for number, value_ns in enumerate(drawn):
        part = count * (number + 1) // 24 - count * number // 24
        if not part:
            continue
        name = f"bucket_{bucket_of(int(value_ns)):02}"
        values[name] = values.get(name, 0) + part
        values["ns"] += int(value_ns) * part
        values["max_ns"] = max(values["max_ns"], int(value_ns))
    return values


def _named(values: dict[str, int], name: str) -> dict[str, int]:
    return {f"{name}_{key.removeprefix('bucket_')}": value for key, value in values.items() if key.startswith("bucket_")}


def _time(chance: random.Random, busy: float, is_bad: bool) -> EventRow:
    seconds = {
        "cpu": 21 * busy, "runnable": 1.4 * busy + 9 * is_bad, "lock": 3.1 * busy + 14 * is_bad, "disk": 4.2 * busy, "net": 12 * busy,
        "pipe": 1.1, "page": 0.4 * busy, "child": 0.5, "other": 0.8, "poll": 236.0, "sleep": 38.0,
    }  # fmt: skip
    jitter = {f"{name}_ns": int(value * SECOND * chance.uniform(0.92, 1.08)) for name, value in seconds.items()}
    withheld = {"throttled_ns": int((0.9 * busy + 6 * is_bad) * SECOND), "steal_ns": int(0.2 * busy * SECOND)}
    switches = int(23_000 * busy)
    return EventRow({"switches": switches, "observed": switches, "threads": 32, **jitter, **withheld}, "checkout")


def _wait(seconds: float, count: int, **parts: Any) -> EventRow:
    values = {"count": count, "ns": int(seconds * SECOND), "max_ns": int(seconds * SECOND / max(1, count) * 7), "observed": count}
    if parts["wait_class"] == "disk":
        values["uninterruptible_ns"] = values["ns"]
    return EventRow(values, "checkout", **parts)


def _pool() -> EventRow:
    """Six threads that are hardly ever given anything to do."""
    values = {"count": 6, "ns": 6 * WINDOW_S * SECOND, "max_ns": WINDOW_S * SECOND, "observed": 6}
    return EventRow(
        values, "gateway", stack=("start_thread", "pool::Worker::take", "read", "pipe_read"), thread="pool-N", wait_class="pipe"
    )


def _time_of_pool() -> EventRow:
    values = {
        "cpu_ns": 3 * SECOND,
        "pipe_ns": 6 * WINDOW_S * SECOND,
        "poll_ns": 2 * WINDOW_S * SECOND,
        "switches": 2300,
        "threads": 9,
        "observed": 782,
    }
    return EventRow(values, "gateway")


SERVE = ("start_thread", "http::Server::run", "http::Server::serve")
ORDER = (*SERVE, "cart::Order::submit")


def _waits(chance: random.Random, busy: float, is_bad: bool) -> Sequence[EventRow]:
    lock = ("pthread_mutex_lock", "__lll_lock_wait", "__futex_wait", "futex_wait_queue")
    release = ("start_thread", "cache::Lru::evict_loop", "cache::Lru::evict", "cache::Lru::unlock")
    worker, flusher = {"thread": "worker-N"}, {"thread": "flusher"}
    part = chance.uniform(0.9, 1.1)
    loud = 4.0 if is_bad else 1.0
    get = (*ORDER, "cart::total_of", "cache::Lru::get", *lock)
    price = (*ORDER, "pricing::Engine::evaluate", "cache::Lru::get", *lock)
    return [
        _wait(1.9 * busy * part * loud, 410, stack=get, second=release, wait_class="lock", **worker),
        _wait(0.7 * busy * loud, 160, stack=price, second=release, wait_class="lock", **worker),
        _wait(0.5, 90, stack=price, second=(*ORDER, "cart::Order::price", "cache::Lru::unlock"), wait_class="lock", **worker),
        _wait(8.2 * busy * part, 900, stack=(*ORDER, "db::Client::query", "recv", "sk_wait_data"), wait_class="net", **worker),
        _wait(3.1 * busy, 350, stack=(*SERVE, "search::Client::suggest", "recv", "sk_wait_data"), wait_class="net", **worker),
        _wait(3.6 * busy, 120, stack=(*ORDER, "audit::Log::append", "fsync", "io_schedule"), wait_class="disk", **worker),
        _wait(0.6 * busy, 40, stack=("start_thread", "audit::Log::rotate", "fsync", "io_schedule"), wait_class="disk", **flusher),
        _wait(236.0, 2400, stack=("start_thread", "http::Server::run", "epoll_wait", "ep_poll"), wait_class="poll", **worker),
        _wait(38.0, 38, stack=("start_thread", "metrics::Reporter::loop", "clock_nanosleep", "do_nanosleep"), wait_class="sleep"),
    ]


def _run_queue(chance: random.Random, busy: float, is_bad: bool) -> Sequence[EventRow]:
    slow = 60 * MS if is_bad else 0.9 * MS * busy**2
    return [
        EventRow(_spread(chance, 14_000 * busy, int(20_000 * busy)), "checkout", thread="worker-N"),
        EventRow(_spread(chance, slow, int(260 * busy)), "checkout", stack=(*ORDER, "cart::total_of"), thread="worker-N"),
    ]


def _locks(chance: random.Random, busy: float, is_bad: bool) -> Sequence[EventRow]:
    lru, slow = "mutex cache::Lru+0x18", 9 * MS if is_bad else 3 * MS
    get, hold = (*ORDER, "cart::total_of", "cache::Lru::get"), ("start_thread", "cache::Lru::evict_loop", "cache::Lru::evict")
    journal = ("start_thread", "audit::Log::rotate", "audit::Log::sync")
    return [
        EventRow(_spread(chance, slow, int(410 * busy)), "checkout", get, hold, lru, "worker-N"),
        EventRow(_spread(chance, 2 * MS, int(160 * busy)), "checkout", (*ORDER, "pricing::Engine::evaluate", "cache::Lru::get"), hold, lru),
        EventRow(_spread(chance, 1.1 * MS, 90), "checkout", (*ORDER, "audit::Log::append"), journal, "mutex audit::Log+0x8"),
        EventRow(_spread(chance, 400_000, 70), "checkout", ("start_thread", "alloc::Arena::grow"), (), "mmap_lock"),
        EventRow(_spread(chance, 60_000, 23), "checkout", (*SERVE, "metrics::Counter::flush"), (), "rwsem &inode->i_rwsem"),
    ]


def _calls(chance: random.Random, busy: float, is_bad: bool) -> Sequence[EventRow]:
    calls: Sequence[tuple[str, float, float]] = (
        ("epoll_wait", 90 * MS, 2600), ("recvfrom", 8 * MS, 1250), ("futex", 3 * MS, 820), ("fsync", (40 if is_bad else 9) * MS, 160),
        ("write", 40_000, 5200), ("read", 25_000, 7100), ("sendto", 60_000, 1300), ("openat", 30_000, 310), ("clock_nanosleep", SECOND, 38),
        ("close", 3000, 300), ("getpid", 300, 23), ("madvise", 120_000, 44), ("accept4", 15_000, 520), ("recvfrom:EAGAIN", 2000, 940),
        ("openat:ENOENT", 22_000, 230), ("futex:EAGAIN", 1500, 61), ("connect:ECONNREFUSED", 90_000, 7), ("accept4:EAGAIN", 900, 130),
    )  # fmt: skip
    return [EventRow(_spread(chance, middle, int(count * busy), 0.7), "checkout", object=name) for name, middle, count in calls]


def _call_stacks(chance: random.Random, busy: float) -> Sequence[EventRow]:
    stacks: Sequence[tuple[str, float, int, tuple[str, ...]]] = (
        ("recvfrom", 8.0, 900, (*ORDER, "db::Client::query")), ("recvfrom", 2.9, 350, (*SERVE, "search::Client::suggest")),
        ("fsync", 3.6, 120, (*ORDER, "audit::Log::append")), ("fsync", 0.6, 40, ("start_thread", "audit::Log::rotate")),
        ("write", 0.21, 5200, (*ORDER, "audit::Log::append")), ("read", 0.18, 7100, (*SERVE, "http::Parser::fill")),
        ("sendto", 0.08, 1300, (*ORDER, "db::Client::query")), ("futex", 2.6, 820, (*ORDER, "cache::Lru::get")),
    )  # fmt: skip
    part = busy * chance.uniform(0.95, 1.05)
    return [
        EventRow({"count": count, "ns": int(seconds * part * SECOND), "observed": count // 7}, "checkout", stack, object=name)
        for name, seconds, count, stack in stacks
    ]


def _peers(chance: random.Random, busy: float, is_bad: bool, host: str) -> Sequence[EventRow]:
    def peer(name: str, volume: float, rtt_ns: float, opened: int, lost: float = 0.0002, **more: Any) -> EventRow:
        out, back = int(volume * busy * chance.uniform(0.9, 1.1)), int(volume * 3.1 * busy)
        segments = out // 900 + 40
        values = {
            "connects" if name.startswith("out") else "accepts": opened, "closes": opened, "bytes_out": out, "bytes_in": back,
            "segments_out": segments, "segments_in": back // 1200 + 30, "retransmits": int(segments * lost), "rtt_max_ns": int(rtt_ns * 9),
        }  # fmt: skip
        latency = _named(_spread(chance, rtt_ns, 60), "rtt")
        connects = _named(_spread(chance, rtt_ns * 1.3, opened), "connect") if name.startswith("out") else {}
        counts = {key: value for key, value in more.items() if isinstance(value, int)}
        return EventRow({**values, **latency, **connects, **counts}, str(more.get("service", "checkout")), object=name)

    rows = [
        peer("in :8443", 21_000_000, 2.2 * MS, 420, 0.0009),
        peer("out 127.0.0.1:6379", 3_400_000, 42_000, 7),
        peer("out 10.20.0.9:5432", 8_800_000, 0.45 * MS, 23, 0.034 if is_bad else 0.0004),
        peer("out 10.20.0.31:9200", 2_100_000, 1.3 * MS, 61, 0.0021),
        peer("out 198.51.100.7:443", 160_000, 24 * MS, 11, 0.013),
        peer("out 10.20.0.44:8125", 9_000, 0.3 * MS, 0, refused=7, resets=3),
        peer("in :6379", 3_400_000, 42_000, 7, service="redis"),
    ]
    if host == "web-1":
        rows.append(peer("out 127.0.0.1:8443", 4_200_000, 35_000, 70, service="gateway"))
    return rows
