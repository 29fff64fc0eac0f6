# SPDX-License-Identifier: Apache-2.0
"""The names of everything: which binaries have a table, which are wanted, and what frames are called with what is there.

A binary is looked for on the server's own disk first (in the background), then asked of the agents, and of debuginfod servers while its
table could be better. Nothing on the query path waits: what has no table yet is unknown, and `generation` tells when to ask again.
"""

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.errors import BadRequest, Overloaded, ServerError
from server.profile.names import FrameColumns, FrameNames
from server.store.protocol import BinaryInfo
from server.symbols.build_result import BuildResult, BuildStatus, Quality, Refused
from server.symbols.debug_links import probe_or_none
from server.symbols.elf_probe import Probe, probe
from server.symbols.fetching import Fetching
from server.symbols.history import History, Record
from server.symbols.identity import BinaryKey, key_of
from server.symbols.ledger import Ledger, NameState, SymbolState
from server.symbols.local import content_hash
from server.symbols.namebook import Binaries, NameBook
from server.symbols.settings import SymbolSettings
from server.symbols.source_files import BETTER_IS_HERE, Held, SourceFiles, held_of, held_of_file, quality_of, worth_of
from server.symbols.sources import Origin, Source
from server.symbols.split_ids import U64, split_ids
from server.symbols.table import Table, Traits
from server.symbols.table_cache import TableCache
from server.symbols.uploads import Delivered, SymbolUploads
from server.symbols.work_queue import WorkQueue
from server.symbols.workshop import Stores, Workshop

log = logging.getLogger(__name__)

WORKERS = 2
MAX_SERVICES = 4096
RETRY_S = 3600.0
"""A binary that failed is asked for again after so long: one bad upload must not stand for ever."""
NEWS_S = 600.0
"""How often it is seen whether files have come for a binary whose table could be better."""
BEST = max(Quality)

_LOOKING = SymbolState(NameState.PENDING, "being looked for on this host")
_ASKED = SymbolState(NameState.WANTED, "asked of the agents")
_BUILDING = SymbolState(NameState.PENDING, "its table is being made")
_NO_SYMBOLS = "the file holds no symbols"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a file that somebody brought."""

    build_id: str
    """In hex; "" for a file without one."""
    binaries: int
    """How many that run it names; 0 when it waits for the first."""
    is_known: bool
    """A file that tells as much or more was here already."""


class Namer:
    """See the module. All methods may be called from any thread."""

    def __init__(
        self, settings: SymbolSettings, clock: Callable[[], float] = time.monotonic, unix_clock: Callable[[], float] = time.time
    ) -> None:
        """Raises ServerError when the directory cannot be used."""
        self._settings = settings
        self._clock = clock
        try:
            settings.directory.mkdir(parents=True, exist_ok=True)
            self._cache = TableCache(settings.directory, settings.table_max_bytes)
            self._files = SourceFiles(settings.directory, settings.files_max_bytes, settings.free_min_bytes)
            self._history = History(settings.directory, unix_clock)
            self._uploads = SymbolUploads(settings, self._refusal, self._deliver)
        except OSError as error:
            raise ServerError(f"symbol directory {settings.directory} cannot be used: {error}") from error
        self._workshop = Workshop(settings, Stores(self._cache, self._files, self._history))
        self._ledger = Ledger(clock)
        self._lock = threading.Lock()
        self._books: OrderedDict[str, NameBook] = OrderedDict()
        self._generation = 0
        self._without_common: set[BinaryKey] = set()
        """Those that may lack what dwz moved into another file."""
        self._queue = WorkQueue(WORKERS, "symbols")
        self._fetching = Fetching(settings, self._ledger, self._history, self._take, (clock, unix_clock))

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
        known = self._ledger.get(key)
        if known is None:
            return self._meet(key, binary)
        if known.binary is None:
            self._ledger.learn(key, binary)
        if known.state.state == NameState.FAILED and self._clock() - known.since_s > RETRY_S:
            return self._ledger.set(key, _ASKED)
        return known.state

    def tend(self) -> None:
        """Look after the binaries whose table could be better: files that came for them, debuginfod servers to ask. Does not wait."""
        for key, known in self._ledger.poor(BEST):
            if known.binary is None or key.flaw():
                continue
            if self._ledger.is_due(key, NEWS_S):
                self._start(partial(self._look_for_news, key, known.binary), key)
            self._fetching.tend(key, known)
        for common in self._lacking():
            self._fetching.want_common(common)

    def record(self, binary: BinaryInfo) -> Record:
        """Since when a binary is known, and what became of its sources."""
        return self._history.record(key_of(binary))

    def is_fetch_waiting(self, binary: BinaryInfo) -> bool:
        """Whether its debug file waits to be asked of a debuginfod server."""
        return self._fetching.is_waiting(binary.build_id)

    def retry(self, identity: str) -> SymbolState | None:
        """Try all sources again now: this host at once, agents at their next push, a debuginfod server when its hour is over.

        `identity` is the digest of a key; None when no such binary was met.
        """
        key = next(iter(self._ledger.find(lambda key: key.digest == identity)), None)
        known = None if key is None else self._ledger.get(key)
        if key is None or known is None:
            return None
        if known.state.state == NameState.PENDING or key.flaw():
            return known.state
        if known.state.state != NameState.NAMED:
            self._ledger.set(key, _LOOKING)
        self._remake(key)
        if known.state.quality != BEST:
            self._fetching.want_now(key)
        return _LOOKING

    def take_file(self, descriptor: int) -> Taken:
        """Take a file that somebody brought; it is matched by the identity inside and stays the caller's to close.

        Raises BadRequest for one that can name nothing, Overloaded when there is no room to keep it and nobody has run it yet.
        """
        try:
            seen = probe(descriptor)
        except Refused as refused:
            raise BadRequest(f"the file is refused: {refused.reason}") from refused
        ids = split_ids(descriptor)
        if ids.size:
            return self._take_split(ids, descriptor, seen)
        held = held_of_file(seen, content_hash(descriptor))
        if not held.is_known:
            raise BadRequest("the file is refused: it has no build id, and without its code nothing tells which binary it belongs to")
        if not worth_of(seen):
            raise BadRequest("the file is refused: it holds neither symbols nor debug data")
        refusal, binaries = self._take(held, Source(Origin.UPLOAD, descriptor))
        if refusal not in ("", BETTER_IS_HERE) and not binaries:
            raise Overloaded(f"the file cannot be kept: {refusal}")
        return Taken(held.build_id.hex(), binaries, refusal == BETTER_IS_HERE)

    def _take_split(self, ids: U64, descriptor: int, seen: Probe) -> Taken:
        """Keep a .dwo or .dwp file by its units, and make the tables that lack some of them."""
        refusal = self._workshop.splits.keep(ids, Origin.UPLOAD, descriptor, seen)
        if refusal not in ("", BETTER_IS_HERE):
            raise Overloaded(f"the file cannot be kept: {refusal}")
        wanting = self._workshop.splits.wanting(ids)
        for key in wanting:
            self._remake(key)
        return Taken("", len(wanting), is_known=False)

    def held(self, build_id: bytes) -> Quality:
        """How good what is held for a GNU build id is, as a table or as a file; EMPTY when there is nothing."""
        best = quality_of(self._files.worth(Held(pb.BUILD_ID_KIND_GNU, build_id)))
        for key in self._ledger.find(lambda key: key.build_id == build_id):
            known = self._ledger.get(key)
            best = best if known is None else max(best, known.state.quality)
        return best

    def upload(self, request: symbols_pb2.UploadRequest) -> symbols_pb2.UploadResponse:
        """Take one piece of an upload; see SymbolUploads.receive for the errors."""
        return self._uploads.receive(request)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is looked for or built; False when that takes longer."""
        return self._queue.wait_idle(timeout_s)

    def wanted_some(self, most: int) -> list[BinaryKey]:
        """At most so many of the binaries that agents should be asked for, others at each call until all had their turn."""
        return self._ledger.wanted_some(most)

    def pending(self) -> int:
        """How many binaries are looked for or built right now. What debuginfod servers are asked for is left out: nobody waits."""
        return len(self._queue)

    def look_at(self, binaries: Sequence[tuple[BinaryInfo, float]]) -> list[int]:
        """Somebody looks at these binaries, each with its weight: they are named first. Gives row ids of those still without names."""
        keys = self._queue.look_at({key_of(binary): weight for binary, weight in binaries})
        return [binary.row_id for binary, _ in binaries if key_of(binary) in keys and self.state(binary).state == NameState.PENDING]

    def close(self) -> None:
        """Stop after what is being built now."""
        self._fetching.close()
        self._queue.close()
        self._uploads.close()

    def _meet(self, key: BinaryKey, binary: BinaryInfo) -> SymbolState:
        flaw = key.flaw()
        table = None if flaw else self._cache.get(key)
        if flaw:
            state = SymbolState(NameState.NONE, flaw)
        elif table is not None:
            state = _state_of(table)
        elif self._has_sources(key):
            state = _LOOKING
        else:
            state = _ASKED
        known, is_first = self._ledger.begin(key, binary, state)
        if is_first and not flaw:
            self._without_common.add(key)
            if state == _LOOKING or (table is not None and table.facts.traits & Traits.SPLIT):  # What it lacks is not remembered.
                self._start(lambda: self._make(key, binary), key)
            elif state.state == NameState.NAMED and state.quality != BEST:
                self._start(lambda: self._look_for_news(key, binary), key)
        return known.state

    def _has_sources(self, key: BinaryKey) -> bool:
        """Whether it is worth looking here first; of the kernel there is a debug file or none, and its list comes from agents."""
        if self._settings.local_files and not key.counts_from_text:
            return True
        return self._workshop.size_bytes(key, None) > 0

    def _table(self, binary: BinaryInfo) -> Table | None:
        state = self.state(binary).state
        if state == NameState.NONE:  # There may be a table with the bounds of functions alone.
            return self._cache.get(key_of(binary))
        if state != NameState.NAMED:
            return None
        table = self._cache.get(key_of(binary))
        if table is None:  # It left the cache: wanted again from now on.
            self._ledger.forget(key_of(binary))
        return table

    def _remake(self, key: BinaryKey) -> None:
        """Make a table anew from all there is then; many files that come for one binary at once make it once or twice."""
        known = self._ledger.get(key)
        self._start(partial(self._make, key, None if known is None else known.binary), key, is_remake=True)

    def _start(self, work: Callable[[], None], key: BinaryKey, came: int | None = None, *, is_remake: bool = False) -> None:
        """Work on a binary in the background; `came` is the descriptor of a file that has just come for it."""

        def guarded() -> None:
            try:
                work()
            except (OSError, ServerError) as error:  # The disk: this binary stays without names, and says why.
                log.error("symbol work failed binary=%s reason=%s", key.digest, error)
                self._ledger.set(key, SymbolState(NameState.FAILED, str(error)))

        known = self._ledger.get(key)
        here = self._workshop.size_bytes(key, None if known is None else known.binary)
        self._queue.add(key, here + (0 if came is None else os.fstat(came).st_size), guarded, is_remake=is_remake)

    def _look_for_news(self, key: BinaryKey, binary: BinaryInfo) -> None:
        if self._workshop.has_news(key, binary):
            self._make(key, binary)

    def _make(self, key: BinaryKey, binary: BinaryInfo | None, fresh: Source | None = None) -> None:
        """Make the table anew from all there is, and say how it ended."""
        if key.counts_from_text:
            self._settle(key, self._workshop.make_kernel(key, fresh))
        else:
            self._settle(key, self._workshop.make(key, binary, fresh))
            self._without_common.add(key)

    def _settle(self, key: BinaryKey, result: BuildResult | None) -> None:
        """Note the state after a build; None when there was nothing to build from. A table that was there before stays."""
        table = self._cache.get(key)
        if table is not None:
            self._ledger.set(key, _state_of(table))
        elif result is None:
            self._ledger.set(key, _ASKED)
        else:
            state = NameState.NONE if result.status == BuildStatus.UNSUPPORTED else NameState.FAILED
            self._ledger.set(key, SymbolState(state, f"{result.status}: {result.reason}"))
        if result is not None and result.status == BuildStatus.OK:
            with self._lock:
                self._generation += 1

    def _take(self, held: Held, source: Source) -> tuple[str, int]:
        """Keep a file and make the tables of all binaries that it belongs to. Gives why it was not kept, and for how many it is."""
        seen = probe_or_none(source.descriptor)
        refusal = "it is no ELF file" if seen is None else self._files.keep(held, source.origin, source.descriptor, seen)
        if refusal == BETTER_IS_HERE:
            return refusal, 0
        keys = self._ledger.find(lambda key: held_of(key).digest == held.digest)
        if not keys and held.build_id:  # It may be the common file of debug files that are here.
            sharing = self._lacking().get(held.build_id, [])
            for key in sharing:
                self._remake(key)
            return refusal, len(sharing)
        for key in keys:
            known = self._ledger.get(key)
            own = replace(source, descriptor=os.dup(source.descriptor))
            self._start(partial(self._make_with, key, None if known is None else known.binary, own), key, own.descriptor)
        return refusal, len(keys)

    def _lacking(self) -> dict[bytes, list[BinaryKey]]:
        """The common files that are missing, by build id, and the binaries whose debug data lie in them in part."""
        found: dict[bytes, list[BinaryKey]] = {}
        for key in list(self._without_common):
            common = self._workshop.missing_common(key)
            if common is None:
                self._without_common.discard(key)
            else:
                found.setdefault(common, []).append(key)
        return found

    def _make_with(self, key: BinaryKey, binary: BinaryInfo | None, fresh: Source) -> None:
        try:
            self._make(key, binary, fresh)
        finally:
            os.close(fresh.descriptor)

    def _refusal(self, key: BinaryKey) -> str:
        """Why an agent's upload for `key` is not wanted; "" when it is. What nobody asked for yet is welcome."""
        known = self._ledger.get(key)
        if known is None or known.state.state == NameState.WANTED:
            return ""
        return "its names are known" if known.state.state == NameState.NAMED else known.state.reason

    def _deliver(self, delivered: Delivered) -> None:
        """Make the table of a finished upload in the background; the file behind the descriptor is gone when that is closed."""
        self._ledger.set(delivered.key, _BUILDING)
        self._start(lambda: self._build_upload(delivered), delivered.key, delivered.descriptor)

    def _build_upload(self, delivered: Delivered) -> None:
        key, source = delivered.key, Source(Origin.AGENT, delivered.descriptor)
        try:
            if delivered.format == symbols_pb2.UPLOAD_FORMAT_KALLSYMS:
                self._settle(key, self._workshop.take_list(key, source.descriptor))
            else:
                self._workshop.keep(key, source)
                known = self._ledger.get(key)
                self._make(key, None if known is None else known.binary, source)
        finally:
            os.close(source.descriptor)


def _state_of(table: Table) -> SymbolState:
    if not len(table) or table.facts.quality == Quality.EMPTY:
        return SymbolState(NameState.NONE, _NO_SYMBOLS, table.facts.quality)
    return SymbolState(NameState.NAMED, "", table.facts.quality)
