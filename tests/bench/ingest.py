# SPDX-License-Identifier: Apache-2.0
"""Rows a second into the server, when it knows them: decoded and merged in one process; then through gRPC, durable when answered."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import numpy as np

from agent.ship.client import Client
from emberwatch.v1 import collector_pb2 as collector
from server.ingest.decode import decode_push
from server.ingest.limits import IngestLimits
from server.store.sums import add_by_group
from tests.bench.report import MILLION_ROWS, MS, Line, Unit, reached, told
from tests.bench.timing import BenchError, Effort, cpu_s, interleaved
from tests.bench.windows import NORMAL_ROWS, ROWS, WINDOW_NS, Programs, Shipping
from tests.support.servers import RunningServer, serving

WINDOWS_PER_S = Unit("windows/s", 1, 0)
LARGE_WINDOWS, NORMAL_WINDOWS = 12, 240
CLIENTS = 8
KEY_ROOM = 1 << 21


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        server = closing.enter_context(serving(folder / "server", "--no-local-files"))
        client = Client(server.grpc)
        closing.callback(client.close)
        rows = effort.rows(ROWS)
        known = _known(Shipping(folder / "large", client.push), rows, effort.rounds * LARGE_WINDOWS // 2)
        yield _decode_line(known[:4], rows, effort)
        yield from _durable_lines(client, server, known, rows)
        normal = _known(Shipping(folder / "normal", client.push, bytes(16)), NORMAL_ROWS, effort.rows(2 * NORMAL_WINDOWS))
        yield from _normal_lines(client, normal)
        yield from _question_lines(server, len(known) * rows)


def _known(shipping: Shipping, rows: int, count: int) -> list[collector.PushRequest]:
    """Send one window of so many rows; then give the pushes of `count` more, in which every row is a number."""
    programs = Programs.with_rows(rows)
    start_unix_ns = time.time_ns() // WINDOW_NS * WINDOW_NS - (count + 2) * WINDOW_NS
    shipping.ship(programs.batch(0), start_unix_ns)
    batches = [programs.batch(number) for number in range(1, 5)]
    return shipping.requests((batches[number % 4] for number in range(count)), start_unix_ns + WINDOW_NS)


def _decode_line(requests: Sequence[collector.PushRequest], rows: int, effort: Effort) -> Line:
    """Decode and merge as ingest and query do; what a core does in a second."""
    now, limits = time.time_ns(), IngestLimits()
    totals = np.zeros(KEY_ROOM, np.uint64)

    def work() -> None:
        for request in requests:
            for series in decode_push(request, now, limits).series:
                first = series.columns[0].values
                if first is None:
                    raise BenchError("a series has no first column")
                add_by_group(totals, series.known_keys, first)

    taken = interleaved({"ours": work}, effort.rounds)["ours"]
    return reached(f"decode and merge, windows of {rows:,} known rows, one core", len(requests) * rows / taken, MILLION_ROWS, 20e6)


def _durable_lines(client: Client, server: RunningServer, requests: Sequence[collector.PushRequest], rows: int) -> Iterator[Line]:
    """One window after another, each on disk before the next is sent."""
    walls, began_cpu_s = [], cpu_s(server.process.pid)
    for request in requests:
        began_s = time.perf_counter()
        _stored(client.push, request)
        walls.append(time.perf_counter() - began_s)
    server_s = (cpu_s(server.process.pid) - began_cpu_s) / len(requests)
    what = f"gRPC and durable append, {rows:,} known rows a window"
    yield reached(f"{what}, by the clock", rows / median(walls), MILLION_ROWS, 5e6)
    yield told(f"{what}, by the server's CPU", rows / server_s, MILLION_ROWS)


def _normal_lines(client: Client, requests: Sequence[collector.PushRequest]) -> Iterator[Line]:
    half = len(requests) // 2
    began_s = time.perf_counter()
    for request in requests[:half]:
        _stored(client.push, request)
    yield told(f"windows of {NORMAL_ROWS:,} known rows, one agent", half / (time.perf_counter() - began_s), WINDOWS_PER_S)
    began_s = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda request: _stored(client.push, request), requests[half:]))
    rest = len(requests) - half
    yield told(f"windows of {NORMAL_ROWS:,} known rows, {CLIENTS} agents at once", rest / (time.perf_counter() - began_s), WINDOWS_PER_S)


def _question_lines(server: RunningServer, rows: int) -> Iterator[Line]:
    """The same question twice: the first one names the frames and builds the trees."""
    for what in ("first", "second"):
        began_s = time.perf_counter()
        server.get("flamegraph", query="cpu{}", **{"from": "-6h"})
        yield told(f"flame graph over {rows / 1e6:.1f} M stored rows, {what} time", time.perf_counter() - began_s, MS)


def _stored(push: Callable[[collector.PushRequest], collector.PushResponse], request: collector.PushRequest) -> None:
    status = push(request).status
    if status != collector.PUSH_STATUS_STORED:
        raise BenchError(f"a push was answered with {collector.PushStatus.Name(status)}")
