# SPDX-License-Identifier: Apache-2.0
"""The names of everything: which binaries have a table, which are wanted, and what frames are called with what is there.

A binary is looked for on the server's own disk first (in the background), then asked of the agents. Nothing on the query path
waits: what has no table yet is unknown, and `generation` tells when to ask again.
"""

import itertools
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.errors import ServerError
from server.profile.names import FrameColumns, FrameNames
from server.store.protocol import BinaryInfo
from server.symbols.build_result import BuildResult, BuildStatus
from server.symbols.builder import BuildOrder, build_table
from server.symbols.debug_links import open_by_build_id
from server.symbols.identity import BinaryKey, key_of
from server.symbols.local import open_sources
from server.symbols.namebook import Binaries, NameBook
from server.symbols.settings import SymbolSettings
from server.symbols.sources import close_all
from server.symbols.table import Table
from server.symbols.table_cache import TableCache
from server.symbols.uploads import Delivered, SymbolUploads

log = logging.getLogger(__name__)

WORKERS = 2
MAX_KNOWN_BINARIES = 100_000
MAX_SERVICES = 4096
RETRY_S = 3600.0
"""A binary that failed is asked for again after so long: one bad upload must not stand for ever."""


class NameState(StrEnum):
    """What can be said of a binary's names; the words are part of the API."""

    NAMED = "named"
    WANTED = "wanted"
    PENDING = "pending"
    NONE = "none"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SymbolState:
    """State of one binary, and why in words when it has no names."""

    state: NameState
    reason: str = ""


_LOOKING = SymbolState(NameState.PENDING, "being looked for on this host")
_ASKED = SymbolState(NameState.WANTED, "asked of the agents")
_BUILDING = SymbolState(NameState.PENDING, "uploaded, its table is being made")
_NAMED = SymbolState(NameState.NAMED)
_EMPTY = SymbolState(NameState.NONE, "the file holds no symbols")


class Namer:
    """See the module. All methods may be called from any thread."""

    def __init__(self, settings: SymbolSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ServerError when the directory cannot be used."""
        self._settings = settings
        self._clock = clock
        self._failed_at_s: dict[BinaryKey, float] = {}
        try:
            settings.directory.mkdir(parents=True, exist_ok=True)
            self._cache = TableCache(settings.directory, settings.table_max_bytes)
            self._uploads = SymbolUploads(settings, self._is_key_wanted, self._deliver)
        except OSError as error:
            raise ServerError(f"symbol directory {settings.directory} cannot be used: {error}") from error
        self._lock = threading.Lock()
        self._states: OrderedDict[BinaryKey, SymbolState] = OrderedDict()
        self._books: OrderedDict[str, NameBook] = OrderedDict()
        self._generation = 0
        self._wanted: OrderedDict[BinaryKey, None] = OrderedDict()
        """Keys in state WANTED, the one that was asked for longest ago first."""
        self._workers = ThreadPoolExecutor(WORKERS, "symbols")
        self._running: set[Future[None]] = set()

    @property
    def generation(self) -> int:
        """Grows whenever a table is added: names made before may be better now."""
        return self._generation

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        """Name the frames of a service's dictionary. What was named before is remembered as long as the dictionary only grows.

        `binaries` gives the binaries of row ids, in order; it is called once, with the few ids that are needed.
        """
        with self._lock:
            book = self._books.setdefault(service, NameBook())
            self._books.move_to_end(service)
            while len(self._books) > MAX_SERVICES:
                self._books.popitem(last=False)
        return book.names(frames, strings, binaries, (self._table, self._generation))

    def wanted(self, binary: BinaryInfo) -> bool:
        """Should agents be asked for this binary? False while it is looked for here; ask again at the next push."""
        return self.state(binary).state == NameState.WANTED

    def state(self, binary: BinaryInfo) -> SymbolState:
        """What can be said of the binary's names; the first question starts the search for it."""
        key = key_of(binary)
        with self._lock:
            known = self._states.get(key)
            if known is not None and known.state == NameState.FAILED and self._clock() - self._failed_at_s.get(key, 0.0) > RETRY_S:
                known = self._keep(key, _ASKED)
            if known is not None:
                self._states.move_to_end(key)
                return known
        flaw = key.flaw()
        if flaw:
            return self._set_state(key, SymbolState(NameState.NONE, flaw))
        table = self._cache.get(key)
        if table is not None:
            return self._set_state(key, _NAMED if len(table) else _EMPTY)
        if not self._settings.local_files or key.counts_from_text:
            return self._set_state(key, _ASKED)
        with self._lock:
            if key in self._states:
                return self._states[key]
            self._keep(key, _LOOKING)
        self._start(lambda: self._look_here(binary, key), key)
        return _LOOKING

    def upload(self, request: symbols_pb2.UploadRequest) -> symbols_pb2.UploadResponse:
        """Take one piece of an upload; see SymbolUploads.receive for the errors."""
        return self._uploads.receive(request)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is looked for or built; False when that takes longer."""
        with self._lock:
            running = set(self._running)
        return not running or not wait(running, timeout_s).not_done

    def wanted_some(self, most: int) -> list[BinaryKey]:
        """At most so many of the binaries that agents should be asked for, others at each call until all had their turn."""
        with self._lock:
            keys = list(itertools.islice(self._wanted, most))
            for key in keys:
                self._wanted.move_to_end(key)
        return keys

    def pending(self) -> int:
        """How many binaries are looked for or built right now."""
        with self._lock:
            return len(self._running)

    def close(self) -> None:
        """Stop after what is being built now."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._uploads.close()

    def _table(self, binary: BinaryInfo) -> Table | None:
        if self.state(binary).state != NameState.NAMED:
            return None
        table = self._cache.get(key_of(binary))
        if table is None:  # It left the cache: wanted again from now on.
            with self._lock:
                self._states.pop(key_of(binary), None)
                self._wanted.pop(key_of(binary), None)
        return table

    def _set_state(self, key: BinaryKey, state: SymbolState) -> SymbolState:
        with self._lock:
            self._keep(key, state)
            self._states.move_to_end(key)
            if state.state == NameState.FAILED:
                self._failed_at_s[key] = self._clock()
            while len(self._states) > MAX_KNOWN_BINARIES:
                eldest = self._states.popitem(last=False)[0]
                self._failed_at_s.pop(eldest, None)
                self._wanted.pop(eldest, None)
        return state

    def _keep(self, key: BinaryKey, state: SymbolState) -> SymbolState:
        """Note a state; under the lock."""
        self._states[key] = state
        if state.state == NameState.WANTED:
            self._wanted[key] = None
        else:
            self._wanted.pop(key, None)
        return state

    def _start(self, work: Callable[[], None], key: BinaryKey) -> None:
        def guarded() -> None:
            try:
                work()
            except (OSError, ServerError) as error:  # The disk: this binary stays without names, and says why.
                log.error("symbol work failed binary=%s reason=%s", key.digest, error)
                self._set_state(key, SymbolState(NameState.FAILED, str(error)))

        future = self._workers.submit(guarded)
        with self._lock:
            self._running.add(future)
        future.add_done_callback(self._running.discard)

    def _look_here(self, binary: BinaryInfo, key: BinaryKey) -> None:
        sources = open_sources(binary, self._settings.debug_roots)
        try:
            if not sources:
                self._set_state(key, _ASKED)
                return
            descriptors = [source.descriptor for source in sources]
            result = self._build(BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_ELF, descriptors))
        finally:
            close_all(sources)
        log.info("symbols found on this host binary=%s status=%s symbols=%d", key.digest, result.status, result.symbols)

    def _is_key_wanted(self, key: BinaryKey) -> str:
        """Why an upload for `key` is not wanted; "" when it is. What nobody asked for yet is welcome."""
        with self._lock:
            state = self._states.get(key, _ASKED)
        if state.state == NameState.WANTED:
            return ""
        return "its names are known" if state.state == NameState.NAMED else state.reason

    def _deliver(self, delivered: Delivered) -> None:
        """Make the table of a finished upload in the background; the file behind the descriptor is gone when that is closed."""
        self._set_state(delivered.key, _BUILDING)
        self._start(lambda: self._build_upload(delivered), delivered.key)

    def _build_upload(self, delivered: Delivered) -> None:
        key, sources = delivered.key, [delivered.descriptor]
        try:
            is_elf = delivered.format == symbols_pb2.UPLOAD_FORMAT_ELF
            if is_elf and self._settings.local_files and key.build_id_kind == pb.BUILD_ID_KIND_GNU:
                extra = open_by_build_id(key.build_id_kind, key.build_id, self._settings.debug_roots)
                sources += [] if extra is None else [extra]
            result = self._build(BuildOrder(key, delivered.format, sources))
        finally:
            for descriptor in sources:
                os.close(descriptor)
        log.info("symbols uploaded binary=%s status=%s symbols=%d reason=%s", key.digest, result.status, result.symbols, result.reason)

    def _build(self, order: BuildOrder) -> BuildResult:
        result, path = build_table(order, self._cache.build_directory)
        if path is None:
            state = NameState.NONE if result.status == BuildStatus.UNSUPPORTED else NameState.FAILED
            self._set_state(order.key, SymbolState(state, f"{result.status}: {result.reason}"))
            return result
        try:
            table = self._cache.add(order.key, path)
        finally:
            path.unlink(missing_ok=True)
        self._set_state(order.key, _NAMED if len(table) else _EMPTY)
        with self._lock:
            self._generation += 1
        return result
