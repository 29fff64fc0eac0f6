# SPDX-License-Identifier: Apache-2.0
"""Windows for the benches, made and sent by the agent's own builder, spool and sender.

Two inputs, the same on every machine: the trace recorded by the agent (tests/data/README.md), and a synthetic one of 200,000 distinct
rows (tests/support/traces.py), since so many are too large to keep.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import zstandard

from agent.collect.encode import Numbering, parcels_from_batch
from agent.collect.window import WindowBuilder
from agent.records.event_drain import WindowDrain
from agent.records.window import WindowTime
from agent.ship.sender import Sender, Step
from agent.ship.spool import Spool
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from tests.bench.timing import BenchError
from tests.support.drains import facts
from tests.support.traces import Trace, TraceShape, trace_of, with_counts

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded.batch.zst"
WINDOW_NS = 10 * 10**9
ROWS = 200_000
"""Distinct rows of the large window."""
NORMAL_ROWS = 1_000
"""Distinct rows of a window of two busy cores at 99 Hz: half of its 1,980 samples."""

Push = Callable[[collector.PushRequest], collector.PushResponse]


def recorded_batch() -> pb.FoldedBatch:
    """The batch of the recorded trace, with all its frames."""
    try:
        return pb.FoldedBatch.FromString(zstandard.ZstdDecompressor().decompress(RECORDED.read_bytes()))
    except (OSError, zstandard.ZstdError) as error:
        raise BenchError(f"cannot read {RECORDED.name} ({error}); python -m tests.bench.record makes it anew") from error


def rows_of(batch: pb.FoldedBatch) -> int:
    """Rows of kind cpu."""
    counts = [series.columns[0].values for series in batch.series if series.kind == "cpu"]
    return sum(len(column.data) // max(1, column.width) for column in counts)


@dataclass(frozen=True, slots=True)
class Programs:
    """Some programs whose windows all have the same rows, each with counts of its own."""

    trace: Trace
    builder: WindowBuilder

    @classmethod
    def with_rows(cls, rows: int) -> "Programs":
        """So many distinct rows, over eight services when there are enough."""
        services = max(1, min(8, rows // 200))
        return cls(trace_of(TraceShape(rows=rows, services=services, processes=services)), WindowBuilder())

    def batch(self, number: int) -> pb.FoldedBatch:
        """The batch of one window, with all its frames."""
        drain = with_counts(self.trace, number).drain
        return self.builder.build(WindowDrain(drain), self.trace.find, self.trace.layout, facts())


class Shipping:
    """The agent's way from a batch to the wire. `push` may be changed; what went out last is in `sent`."""

    def __init__(self, folder: Path, push: Push, agent_id: bytes = bytes(range(16))) -> None:
        self.push = push
        self.sent = collector.PushRequest()
        self._spool = Spool(folder, lambda: 0.0)
        self._sender = Sender(self._spool, self._push, agent_id)
        self._sequence = 0

    def ship(self, batch: pb.FoldedBatch, start_unix_ns: int) -> collector.PushRequest:
        """Send one window; gives what went over the wire."""
        self._sequence += 1
        time = WindowTime(start_unix_ns, start_unix_ns + WINDOW_NS)
        parcels = parcels_from_batch(batch, time, Numbering(1, self._sequence))
        if len(parcels) != 1:
            raise BenchError(f"a window took {len(parcels)} messages")
        self._spool.append(parcels[0])
        step = self._sender.step()
        if step is not Step.SENT:
            raise BenchError(f"a window was not sent: {step.name} {self._sender.state().last_error}")
        return self.sent

    def requests(self, batches: Iterable[pb.FoldedBatch], start_unix_ns: int) -> list[collector.PushRequest]:
        """What would be sent for windows of known rows, one after another from `start_unix_ns`, without sending it."""
        answered = self.push
        self.push = lambda _: collector.PushResponse(status=collector.PUSH_STATUS_STORED)
        try:
            made = [self.ship(batch, start_unix_ns + number * WINDOW_NS) for number, batch in enumerate(batches)]
        finally:
            self.push = answered
        if not all(request.dictionary_id for request in made):
            raise BenchError("rows that should be known are not")
        return made

    def _push(self, request: collector.PushRequest) -> collector.PushResponse:
        self.sent = request
        return self.push(request)
