# SPDX-License-Identifier: Apache-2.0
"""What happens to a push, gRPC left out: decode, store once, answer. Counts what became of each."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns, symbols_pb2
from server.errors import BadRequest, LimitExceeded, Overloaded, ServerError
from server.ingest.decode import decode_push
from server.ingest.kind_totals import KindTotals
from server.ingest.limits import IngestLimits
from server.ingest.window_time import TimeRejected
from server.store.protocol import BinaryInfo, Store
from server.store.push import Appended, AppendStatus, DecodedPush
from server.symbols.identity import BinaryKey, key_of

MOST_WANTED = 16
_DEFAULT_LIMITS = IngestLimits()


class SymbolService(Protocol):
    """What ingest asks of symbols."""

    def wanted(self, binary: BinaryInfo) -> bool:
        """Should agents be asked for this binary? Must not block."""
        ...

    def wanted_some(self, most: int) -> Sequence[BinaryKey]:
        """Some of all binaries that agents should be asked for, others at each call."""
        ...

    def pending(self) -> int:
        """How many binaries are looked for without the agents right now."""
        ...

    def upload(self, request: symbols_pb2.UploadRequest) -> symbols_pb2.UploadResponse:
        """Take one piece. Raises ServerError children."""
        ...


class Ingest:
    """Thread safe: pushes are decoded side by side and stored one after another."""

    def __init__(
        self,
        store: Store,
        symbols: SymbolService | None = None,
        clock: Callable[[], int] = time.time_ns,
        rate_hz: int = 0,
        limits: IngestLimits = _DEFAULT_LIMITS,
    ) -> None:
        """`clock` gives UTC nanoseconds; `rate_hz` is asked of all agents when it is not 0."""
        self._store = store
        self._symbols = symbols
        self._clock = clock
        self._rate_hz = rate_hz
        self._limits = limits
        self._counts: Counter[str] = Counter()
        self.kind_totals = KindTotals()
        """Of what was stored since the start."""
        self._lock = threading.Lock()

    def push(self, request: collector.PushRequest) -> collector.PushResponse:
        """Store a push and answer it. Raises BadRequest, LimitExceeded, TimeRejected, Overloaded; has then stored nothing."""
        try:
            pushed = decode_push(request, self._clock(), self._limits)
            appended = self._store.append(pushed)
        except ServerError as error:
            self._count({f"pushes_{_outcome(error)}_total": 1})
            raise
        if appended.status is AppendStatus.STORED:
            self.kind_totals.add(pushed)
            self._count(_stored_counts(request, pushed, appended))
        self._count({f"pushes_{appended.status.name.lower()}_total": 1})
        return self._response(appended)

    def counters(self) -> Mapping[str, int]:
        """What was counted since the start, by name."""
        with self._lock:
            return dict(self._counts)

    def _count(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._counts.update(counts)

    def _response(self, appended: Appended) -> collector.PushResponse:
        return collector.PushResponse(
            status=collector.PushStatus.Name(int(appended.status)),
            dictionary_id=self._store.dictionary_id,
            new_key_ids=[
                collector.SeriesKeys(series=index, keys=columns.encode_column(keys)) for index, keys in appended.new_key_ids.items()
            ],
            unknown_keys=[
                collector.SeriesKeys(series=index, keys=columns.encode_ascending(keys)) for index, keys in appended.unknown_keys.items()
            ],
            wanted=self._wanted(appended),
            settings=collector.AgentSettings(rate_hz=self._rate_hz),
            server_unix_ns=self._clock(),
            pending_binaries=self._symbols.pending() if self._symbols is not None else 0,
        )

    def _wanted(self, appended: Appended) -> list[symbols_pb2.SymbolRequest]:
        """Binaries whose symbols are wanted: those of the push, then others, so that one whose keys are all known is asked for too."""
        if self._symbols is None:
            return []
        infos = self._store.binaries(appended.binary_row_ids) if appended.binary_row_ids else []
        keys = [key_of(info) for info in infos if self._symbols.wanted(info)][:MOST_WANTED]
        keys += [key for key in self._symbols.wanted_some(MOST_WANTED) if key not in keys]
        return [_symbol_request(key) for key in keys[:MOST_WANTED]]


def _symbol_request(key: BinaryKey) -> symbols_pb2.SymbolRequest:
    kind = pb.BuildIdKind.Name(key.build_id_kind)
    identity = pb.BinaryId(build_id_kind=kind, build_id=key.build_id, content_hash=key.content_hash)
    return symbols_pb2.SymbolRequest(kind=pb.BinaryKind.Name(key.kind), id=identity)


def _outcome(error: ServerError) -> str:
    for kind, outcome in ((TimeRejected, "rejected_time"), (LimitExceeded, "rejected_limit"), (BadRequest, "rejected_malformed")):
        if isinstance(error, kind):
            return outcome
    return "put_off" if isinstance(error, Overloaded) else "failed"


def _stored_counts(request: collector.PushRequest, pushed: DecodedPush, appended: Appended) -> Mapping[str, int]:
    rows = sum(series.known_keys.size + series.new_keys.stacks.size for series in pushed.series)
    return {
        "rows_stored_total": rows,
        "payload_bytes_total": len(request.payload),
        "new_keys_total": sum(keys.size for keys in appended.new_key_ids.values()),
        "windows_time_suspect_total": int(pushed.envelope.is_time_suspect),
    }
