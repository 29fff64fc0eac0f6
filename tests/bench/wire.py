# SPDX-License-Identifier: Apache-2.0
"""Bytes on the wire, a row: at first sight, and when the server has numbered the rows; beside gzipped pprof of the same rows.

The order of samples is free in pprof and decides what gzip makes of it, so both ends are shown (see pprof_encode).
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from emberwatch.v1 import batch_pb2 as pb
from server.ingest.push import Ingest
from server.store.migrate import migrate
from server.store.sql_store import SqlStore
from tests.bench.pprof_encode import gzipped_pprofs
from tests.bench.report import BYTES_PER_ROW, Line, against
from tests.bench.timing import Effort
from tests.bench.windows import ROWS, WINDOW_NS, Programs, Shipping, recorded_batch, rows_of
from tests.support.drains import PERIOD_NS


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    recorded = recorded_batch()
    yield from _lines("recorded", recorded, recorded)
    programs = Programs.with_rows(effort.rows(ROWS))
    yield from _lines("synthetic", programs.batch(1), programs.batch(2))


def _lines(name: str, first: pb.FoldedBatch, second: pb.FoldedBatch) -> Iterator[Line]:
    """Send two windows of the same rows."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'store.db'}"
        migrate(url)
        store = SqlStore(url)
        closing.callback(store.close)
        shipping = Shipping(folder / "spool", Ingest(store).push)
        start_unix_ns = time.time_ns() // WINDOW_NS * WINDOW_NS
        for number, (what, batch, most) in enumerate((("at first sight", first, 1 / 3), ("rows known", second, 1 / 40))):
            rows = rows_of(batch)
            ours = shipping.ship(batch, start_unix_ns - (9 - number) * WINDOW_NS).ByteSize() / rows
            for order, is_sorted in (("as in a map", False), ("sorted by stack", True)):
                pprof = sum(map(len, gzipped_pprofs(batch, PERIOD_NS, is_sorted=is_sorted))) / rows
                yield against(f"wire, {name}, {what}, peer {order}", ours, ("pprof.gz", pprof), BYTES_PER_ROW, most)
