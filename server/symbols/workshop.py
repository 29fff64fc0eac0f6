# SPDX-License-Identifier: Apache-2.0
"""Makes the best table of a binary that all its sources together give, and notes what became of each.

Sources are the binary at its path and its debug file on this host, what is kept of uploads and fetches, and one file that has just come.
The binary and the best debug file are read together, for each knows what the other does not; when that fails they are read alone, so that
one bad file costs nothing but itself. A table that is better stays (table_cache.py).
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.store.protocol import BinaryInfo
from server.symbols.build_result import BuildResult, BuildStatus, Quality
from server.symbols.builder import BuildOrder, build_table
from server.symbols.debug_links import open_by_alt_link, open_by_build_id, probe_or_none
from server.symbols.elf_probe import Probe
from server.symbols.history import History, Outcome
from server.symbols.identity import BinaryKey
from server.symbols.local import open_sources
from server.symbols.settings import SymbolSettings
from server.symbols.source_files import SourceFiles, held_of, worth_of
from server.symbols.sources import Origin, Source, close_all
from server.symbols.split_files import SplitFiles
from server.symbols.table_cache import TableCache

log = logging.getLogger(__name__)

_SENT = (Origin.AGENT, Origin.UPLOAD, Origin.DEBUGINFOD)
_PF_X = 1
_COARSE_S = 1.0
"""File times are coarser than the clock; what came just before is tried once more."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where things are kept."""

    cache: TableCache
    files: SourceFiles
    history: History


@dataclass(frozen=True, slots=True)
class _Seen:
    """A source and what it says of itself; None when it is no ELF file."""

    source: Source
    probe: Probe | None

    @property
    def worth(self) -> int:
        return -1 if self.probe is None else worth_of(self.probe)


class Workshop:
    """See the module. Any thread."""

    def __init__(self, settings: SymbolSettings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores
        self.splits = SplitFiles(settings, stores.files)

    def make(self, key: BinaryKey, binary: BinaryInfo | None, fresh: Source | None = None) -> BuildResult | None:
        """Make the table of an ELF file from what there is. None when there is no source at all.

        `binary` is None when nobody has run it yet; `fresh` has just come and stays the caller's to close.
        """
        kept = self._stores.files.open(key, _code_sizes(binary))
        here = self._open_here(key, binary)
        try:
            if fresh is not None:
                kept = self._without(kept, fresh.origin)
                if not self._is_of_this_code(key, binary, fresh):
                    fresh = None
            sources = [*([] if fresh is None else [fresh]), *here, *kept]
            seen = [_Seen(source, probe_or_none(source.descriptor)) for source in sources]
            return self._make_from(key, binary, seen) if sources else None
        finally:
            close_all([*here, *kept])

    def make_kernel(self, key: BinaryKey, fresh: Source | None = None) -> BuildResult | None:
        """Make the table of a kernel or module from its debug file, its own list, or both. None when there is neither."""
        kept = self._stores.files.open(key, ())
        listed = self._stores.files.open_list(key)
        kept = kept if fresh is None else self._without(kept, fresh.origin)
        debug = self._open_debug_root(key)
        sources = [*([] if fresh is None else [fresh]), *debug, *kept]
        try:
            result = self._make_from_first_good(key, sources, listed)
            is_made = result is not None and result.status == BuildStatus.OK
            if listed is None:  # The agents are asked for it: it names the kernel whatever the file is worth.
                return result if is_made else None
            if is_made:
                self._stores.history.note(key, self._stores.history.attempt(Origin.AGENT, "", Outcome.OK, "", Quality.FULL.name.lower()))
                return result
            result = self._build(BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_KALLSYMS, [listed]))
            self._note(key, Source(Origin.AGENT, listed), result)
            return result
        finally:
            close_all([*debug, *kept])
            if listed is not None:
                os.close(listed)

    def _make_from_first_good(self, key: BinaryKey, sources: Sequence[Source], listed: int | None) -> BuildResult | None:
        """Of the source that tells most; when it is refused, of the next. None when there is none."""
        seen = [_Seen(source, probe_or_none(source.descriptor)) for source in sources]
        best: BuildResult | None = None
        for one in sorted(seen, key=lambda one: -one.worth):
            result = self._make_from_best(key, None, [one], None, listed)
            if result.status == BuildStatus.OK:
                return result
            best = best or result
        return best

    def take_list(self, key: BinaryKey, descriptor: int) -> BuildResult | None:
        """Keep the list of a kernel or module that an agent sent, and make the table anew."""
        if not self._stores.files.keep_list(key, descriptor):
            return self.make_kernel(key)
        result = self._build(BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_KALLSYMS, [descriptor]))
        self._note(key, Source(Origin.AGENT, descriptor), result)
        return result

    def has_news(self, key: BinaryKey, binary: BinaryInfo | None) -> bool:
        """Whether a file has come to be here since sources were last tried."""
        if self.splits.has_news(key, binary):
            return True
        attempts = self._stores.history.record(key).attempts
        tried = max((a.at_unix_s for a in attempts if a.origin in _SENT), default=0.0)
        if self._stores.files.newest_unix_s(key) > tried - _COARSE_S:
            return True
        debug = self._open_debug_root(key)
        came = max((os.fstat(source.descriptor).st_ctime for source in debug), default=0.0)
        close_all(debug)
        return came > max((a.at_unix_s for a in attempts if a.origin == Origin.DEBUG_ROOT), default=0.0) - _COARSE_S

    def size_bytes(self, key: BinaryKey, binary: BinaryInfo | None) -> int:
        """About how many bytes there are to read for a table."""
        size = self._stores.files.kept_bytes(key)
        size += binary.size_bytes if binary is not None and not key.counts_from_text else 0
        debug = self._open_debug_root(key)
        size += sum(os.fstat(source.descriptor).st_size for source in debug)
        close_all(debug)
        return size

    def _open_debug_root(self, key: BinaryKey) -> list[Source]:
        debug = open_by_build_id(key.build_id_kind, key.build_id, self._settings.debug_roots) if self._settings.local_files else None
        return [] if debug is None else [Source(Origin.DEBUG_ROOT, debug)]

    def _open_here(self, key: BinaryKey, binary: BinaryInfo | None) -> list[Source]:
        if not self._settings.local_files:
            return []
        if binary is None:
            return self._open_debug_root(key)
        found = open_sources(binary, self._settings.debug_roots)
        for origin, words in ((Origin.RUNNING_FILE, "not on this host"), (Origin.DEBUG_ROOT, "no debug file on this host")):
            if all(source.origin != origin for source in found):
                self._stores.history.note(key, self._stores.history.attempt(origin, "", Outcome.NOT_FOUND, words))
        return found

    def _is_of_this_code(self, key: BinaryKey, binary: BinaryInfo | None, fresh: Source) -> bool:
        """Whether a file with this build id has the code of the binary that runs (C38)."""
        if fresh.origin == Origin.AGENT:
            return True  # It was read from the very file.
        seen, sizes = probe_or_none(fresh.descriptor), _code_sizes(binary)
        if seen is None or not sizes or not seen.code_sizes or seen.code_sizes == sizes:
            return True
        words = "another binary with the same build id: its code has another size"
        self._stores.history.note(key, self._stores.history.attempt(fresh.origin, fresh.place, Outcome.MISMATCH, words))
        return False

    def _without(self, kept: list[Source], origin: Origin) -> list[Source]:
        """What is kept of the origin that has just sent again is the same file."""
        close_all(source for source in kept if source.origin == origin)
        return [source for source in kept if source.origin != origin]

    def _make_from(self, key: BinaryKey, binary: BinaryInfo | None, seen: Sequence[_Seen]) -> BuildResult:
        best = _best_pair(seen)
        with self._common_file(key, best) as common:
            return self._make_from_best(key, binary, best, common)

    def _make_from_best(
        self, key: BinaryKey, binary: BinaryInfo | None, best: Sequence[_Seen], common: int | None, listed: int | None = None
    ) -> BuildResult:
        order = BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_ELF, [s.source.descriptor for s in best], common, kallsyms=listed)
        result = self._with_splits(order, binary, self._build(order))
        if result.status == BuildStatus.OK:
            for each in best:
                self._note(key, each.source, result)
            return result
        alone = [(each, result) for each in best]
        if len(best) > 1:
            alone = [(each, self._build(BuildOrder(key, symbols_pb2.UPLOAD_FORMAT_ELF, [each.source.descriptor], common))) for each in best]
        for each, single in alone:
            self._note(key, each.source, single)
            if single.status == BuildStatus.MALFORMED and each.source.origin in _SENT:
                self._stores.files.drop(key, each.source.origin)
        return next((single for _, single in alone if single.status == BuildStatus.OK), result)

    def _with_splits(self, order: BuildOrder, binary: BinaryInfo | None, result: BuildResult) -> BuildResult:
        """The same with the .dwo and .dwp files that the first look asked for, as far as they are here."""
        key, missing = order.key, result.missing
        bundle = self.splits.bundle(key, binary, missing) if missing else None
        if bundle is not None:
            try:
                again = self._build(replace(order, splits=bundle.descriptor, split_sizes=bundle.sizes))
            finally:
                os.close(bundle.descriptor)
            if not again.has_lines:  # They are too big, or broken: what was made without them stays.
                reason = again.debug_reason or f"{again.status}: {again.reason}"
                self.splits.note(key, missing, missing)
                outcome = Outcome.LIMIT if reason.startswith(BuildStatus.LIMIT) else Outcome.MALFORMED
                self._stores.history.note(key, self._stores.history.attempt(Origin.SPLIT, "", outcome, reason))
                return replace(result, debug_reason=reason)
            result = again
        if result.status == BuildStatus.OK:
            self.splits.note(key, result.missing, missing)
        if missing:
            name = os.fsdecode(result.missing[0].name).rpartition("/")[2] if result.missing else ""
            more = f" and {len(result.missing) - 1} more" if len(result.missing) > 1 else ""
            words = f"parts of the debug data are in files that are not here: {name}{more}" if name else ""
            outcome = Outcome.NOT_FOUND if result.missing else Outcome.OK
            self._stores.history.note(key, self._stores.history.attempt(Origin.SPLIT, "", outcome, words))
        return result

    @contextmanager
    def _common_file(self, key: BinaryKey, best: Sequence[_Seen]) -> Iterator[int | None]:
        """The file that the debug file points to for what it shares with others; None when there is no such link, or no such file."""
        link = next((s.probe.alt_link for s in reversed(best) if s.probe is not None and s.probe.alt_link is not None), None)
        if link is None:
            yield None
            return
        descriptor = open_by_alt_link(link, self._settings.debug_roots) if self._settings.local_files else None
        kept = [] if descriptor is not None else self._stores.files.open(BinaryKey(key.kind, pb.BUILD_ID_KIND_GNU, link.build_id, b""), ())
        found = kept[0].descriptor if kept else descriptor
        outcome, words = (
            (Outcome.OK, "") if found is not None else (Outcome.NOT_FOUND, "parts of the debug data are in a file that is not here")
        )
        self._stores.history.note(key, self._stores.history.attempt(Origin.COMMON, link.build_id.hex(), outcome, words))
        try:
            yield found
        finally:
            close_all(kept)
            if descriptor is not None:
                os.close(descriptor)

    def missing_common(self, key: BinaryKey) -> bytes | None:
        """The build id of the common file that is missing for a binary; None when none is."""
        attempts = self._stores.history.record(key).attempts
        found = next((a for a in attempts if a.origin == Origin.COMMON and a.outcome == Outcome.NOT_FOUND), None)
        return None if found is None else bytes.fromhex(found.place)

    def _build(self, order: BuildOrder) -> BuildResult:
        result, path = build_table(order, self._stores.cache.build_directory)
        if path is not None:
            try:
                self._stores.cache.add(order.key, path)
            finally:
                path.unlink(missing_ok=True)
        return result

    def _note(self, key: BinaryKey, source: Source, result: BuildResult) -> None:
        quality = result.quality.name.lower() if result.status == BuildStatus.OK else ""
        attempt = self._stores.history.attempt(source.origin, source.place, _outcome(result), result.reason or result.debug_reason, quality)
        self._stores.history.note(key, attempt)
        log.info(
            "symbols made binary=%s origin=%s status=%s symbols=%d reason=%s",
            key.digest, source.origin, result.status, result.symbols, result.reason,
        )  # fmt: skip

    def keep(self, key: BinaryKey, source: Source) -> None:
        """Keep a copy of a file that was sent for this very binary, when it is the one it claims to be."""
        seen, held = probe_or_none(source.descriptor), held_of(key)
        if seen is not None and held.build_id in (seen.build_ids.gnu, seen.build_ids.go, b""):
            self._stores.files.keep(held, source.origin, source.descriptor, seen)


def _best_pair(seen: Sequence[_Seen]) -> list[_Seen]:
    """The binary that tells most and the debug file that tells most; of equals the first."""
    debug = [s for s in seen if s.probe is not None and not s.probe.has_code and s.source.origin != Origin.AGENT]
    binaries = [s for s in seen if s not in debug]
    return [max(some, key=lambda s: s.worth) for some in (binaries, debug) if some]


def _outcome(result: BuildResult) -> Outcome:
    if result.reason.startswith("the file has build id"):
        return Outcome.MISMATCH
    return Outcome(result.status.value)


def _code_sizes(binary: BinaryInfo | None) -> tuple[int, ...]:
    return () if binary is None else tuple(segment[3] for segment in binary.segments if segment[4] & _PF_X)
