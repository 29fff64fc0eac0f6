# SPDX-License-Identifier: Apache-2.0
"""Where unwind tables come from: the disk, the fleet, or a decoding child; in a thread of its own, never in the sampling loop.

get() -> held in memory? -> answer
      -> else PENDING, and the worker asks: cache.py -> FleetTables.fetch -> decoder.py -> FleetTables.offer
"""

import logging
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent.records.binary import BinaryId
from agent.records.unwind import TableMiss, UnwindTable
from agent.unwind.cache import TableCache
from agent.unwind.decoder import Decoder
from agent.unwind.table_file import TableError, identity_digest, unpack_table

log = logging.getLogger(__name__)

Found = UnwindTable | TableMiss


class FleetTables(Protocol):
    """Tables that other agents made. Both are called in the worker's thread, may block for seconds, and do not raise."""

    def fetch(self, binary_id: BinaryId) -> bytes | None:
        """A packed table; None when there is none, or nobody to ask."""
        ...

    def offer(self, binary_id: BinaryId, packed: bytes) -> None:
        """Give a table that was made here to the fleet."""
        ...


class TableDecoder(Protocol):
    """Makes tables; used in the worker's thread only (decoder.py)."""

    def start(self) -> None:
        """Get ready for the next file."""
        ...

    def decode(self, source: int, digest: bytes) -> bytes:
        """The packed table of a file or the packed reason, not checked."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Bounds."""

    directory: Path
    disk_bytes: int = 128 << 20
    held_bytes: int = 64 << 20
    """Of tables in memory; what was asked for longest ago leaves first and comes back from the disk."""
    waiting: int = 128
    """Binaries that wait for the worker, each with an open descriptor; more are asked for again later."""


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What became of the binaries asked for, since the start."""

    from_disk: int = 0
    from_fleet: int = 0
    decoded: int = 0
    rejected_from_fleet: int = 0
    """Tables of the fleet that did not pass the checks; the binary was decoded here."""
    put_off: int = 0
    """Answers PENDING because too many were waiting."""


@dataclass(slots=True)
class _Order:
    """A wish."""

    binary_id: BinaryId
    digest: bytes
    source: int | None
    """A descriptor that the worker closes; None when the file is gone."""
    size_bytes: int
    samples: float = 0.0
    """Of the processes that map it, as last told."""

    def gain(self) -> float:
        """What is gained by a second of work; most gain first makes the fewest samples wait. Small files cost about the same."""
        return (self.samples + 1) / (1 + self.size_bytes // _LARGE_BYTES)


_LARGE_BYTES = 16 << 20


class TableSource:
    """All methods may be called from any thread."""

    def __init__(
        self,
        settings: SourceSettings,
        fleet: FleetTables | None = None,
        decoder: TableDecoder | None = None,
    ) -> None:
        self._settings = settings
        self._fleet = fleet
        self._decoder = decoder or Decoder()
        self._lock = threading.Lock()
        self._held: OrderedDict[BinaryId, Found] = OrderedDict()
        self._held_bytes = 0
        self._pending: set[BinaryId] = set()
        self._ready: set[BinaryId] = set()
        self._counts = SourceCounts()
        self._misses: Counter[TableMiss] = Counter()
        self._orders: dict[BinaryId, _Order] = {}
        """In the order they came, for the busiest programs are met first. The one being served is not in it."""
        self._changed = threading.Condition(self._lock)
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="unwind-tables", daemon=True)
        self._thread.start()

    def get(self, binary_id: BinaryId, source: int | None) -> Found:
        """The table of a binary or why there is none; never waits. `source` is a descriptor of its file, which stays the caller's.

        After PENDING, ask again. Without a descriptor only disk and fleet are asked.
        """
        with self._lock:
            found = self._held.get(binary_id)
            if found is TableMiss.UNREADABLE and source is not None:
                found = None  # That was another file of the same content, or it was gone for a moment.
            if found is not None:
                self._held.move_to_end(binary_id)
                return found
            if binary_id in self._pending or self._is_closing:
                return TableMiss.PENDING
            if len(self._pending) >= self._settings.waiting:
                self._counts = replace(self._counts, put_off=self._counts.put_off + 1)
                return TableMiss.PENDING
            try:
                own = None if source is None else os.dup(source)
                size_bytes = 0 if own is None else os.fstat(own).st_size
            except OSError:
                return TableMiss.UNREADABLE
            self._pending.add(binary_id)
            self._orders[binary_id] = _Order(binary_id, identity_digest(binary_id), own, size_bytes)
            self._changed.notify()
        return TableMiss.PENDING

    def take_ready(self) -> set[BinaryId]:
        """Binaries that were PENDING and have an answer since the last call."""
        with self._lock:
            ready, self._ready = self._ready, set()
        return ready

    def is_pending(self, binary_id: BinaryId) -> bool:
        """Whether the worker will answer for this binary. It was told PENDING, too, when too many waited: then it is asked for again."""
        with self._lock:
            return binary_id in self._pending

    @property
    def waiting(self) -> int:
        """Binaries that the worker has not begun yet."""
        with self._lock:
            return len(self._orders)

    def prefer(self, samples: Mapping[BinaryId, float]) -> None:
        """How much binaries are used that are waited for: what makes most samples whole is made first."""
        with self._lock:
            for binary_id, count in samples.items():
                order = self._orders.get(binary_id)
                if order is not None:
                    order.samples = count

    def counts(self) -> SourceCounts:
        """Counters."""
        with self._lock:
            return self._counts

    def misses(self) -> dict[TableMiss, int]:
        """Binaries without a table, by reason."""
        with self._lock:
            return dict(self._misses)

    def close(self, timeout_s: float = 1.0) -> None:
        """End the worker; what waits is dropped. A file that is being decoded is waited for no longer than `timeout_s`."""
        with self._lock:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        cache = TableCache(self._settings.directory, self._settings.disk_bytes)
        self._decoder.start()
        try:
            while (order := self._next()) is not None:
                try:
                    self._serve(cache, order)
                finally:
                    if order.source is not None:
                        os.close(order.source)
        finally:
            self._decoder.close()
            for left in self._orders.values():
                if left.source is not None:
                    os.close(left.source)

    def _next(self) -> _Order | None:
        """Waits for the next order; None at the end."""
        with self._lock:
            if not self._orders and not self._is_closing and self._held:
                counts = self._counts
                log.info(
                    "unwind tables made from_disk=%d from_fleet=%d decoded=%d without=%d",
                    counts.from_disk,
                    counts.from_fleet,
                    counts.decoded,
                    sum(self._misses.values()),
                )
            while not self._orders and not self._is_closing:
                self._changed.wait()
            if self._is_closing:
                return None
            best = max(self._orders.values(), key=_Order.gain)
            return self._orders.pop(best.binary_id)

    def _serve(self, cache: TableCache, order: _Order) -> None:
        known = cache.get(order.digest)
        if known is not None:
            self._answer(order, known, "from_disk")
        elif not self._ask_fleet(cache, order):
            if order.source is None:
                self._answer(order, TableMiss.UNREADABLE, None)
            else:
                self._take_decoded(cache, order, self._decoder.decode(order.source, order.digest))

    def _ask_fleet(self, cache: TableCache, order: _Order) -> bool:
        packed = self._fleet.fetch(order.binary_id) if self._fleet is not None else None
        if packed is None:
            return False
        try:
            found = unpack_table(packed, order.digest)
        except TableError as error:
            log.warning("unwind table of the fleet refused build_id=%s reason=%s", order.binary_id.build_id.hex(), error)
            self._count("rejected_from_fleet")
            return False
        cache.put(order.digest, packed, found)
        self._answer(order, found, "from_fleet")
        return True

    def _take_decoded(self, cache: TableCache, order: _Order, packed: bytes) -> None:
        try:
            found = unpack_table(packed, order.digest)
        except TableError:
            found = TableMiss.MALFORMED  # The file made the child write nonsense.
        else:
            cache.put(order.digest, packed, found)
        self._answer(order, found, "decoded")
        if self._fleet is not None and isinstance(found, UnwindTable):
            self._fleet.offer(order.binary_id, packed)

    def _answer(self, order: _Order, found: Found, counter: str | None) -> None:
        if counter is not None:
            self._count(counter)
        with self._lock:
            before = self._held.pop(order.binary_id, None)
            self._held[order.binary_id] = found
            self._held_bytes += _bytes_of(found) - (0 if before is None else _bytes_of(before))
            while self._held_bytes > self._settings.held_bytes and len(self._held) > 1:
                self._held_bytes -= _bytes_of(self._held.popitem(last=False)[1])
            if isinstance(found, TableMiss):
                self._misses[found] += 1
            self._pending.discard(order.binary_id)
            self._ready.add(order.binary_id)

    def _count(self, counter: str) -> None:
        with self._lock:
            self._counts = replace(self._counts, **{counter: getattr(self._counts, counter) + 1})


def _bytes_of(found: Found) -> int:
    """In memory; a reason is charged with its entry."""
    return found.addresses.nbytes + found.rules.nbytes if isinstance(found, UnwindTable) else 256
