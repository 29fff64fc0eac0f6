# SPDX-License-Identifier: Apache-2.0
"""Which binaries have their unwind table in the kernel's maps: asked for at first use, kept while used, the least used gives way.

How much a table is used is told in samples of the processes that map it, halved from window to window.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from agent.kernel.unwind_files import FileWalk
from agent.kernel.unwind_maps import TablePlace, UnwindMaps, WalkKind
from agent.records.binary import Binary, BinaryId, FileStamp
from agent.records.process import ProcessKey
from agent.records.unwind import TableMiss, UnwindTable

log = logging.getLogger(__name__)

UNUSED_WINDOWS = 6
"""A table that no process maps any more stays so long: short programs come again and again."""
_MOST_PLACED = 8
"""Tables that find their place in one window after having found none."""

Placed = TablePlace | TableMiss
OpenBinary = Callable[[Binary], int | None]
FilesOf = Callable[[Binary], tuple[FileStamp, ...]]


class TableSource(Protocol):
    """Gives tables; builds and fetches elsewhere."""

    def get(self, binary_id: BinaryId, source: int | None, /) -> UnwindTable | TableMiss:
        """Never waits. The descriptor stays the caller's; what is PENDING is asked for again when it is ready, or was not taken."""
        ...

    def take_ready(self) -> set[BinaryId]:
        """What has an answer since the last call."""
        ...

    def is_pending(self, binary_id: BinaryId, /) -> bool:
        """Whether an answer will come without asking again."""
        ...

    def prefer(self, samples: Mapping[BinaryId, float], /) -> None:
        """How much those are used that are waited for."""
        ...


@dataclass(slots=True)
class TableCounts:
    """What happened since the start; all only grow, except the first three."""

    tables: int = 0
    rows: int = 0
    waiting: int = 0
    """Tables that are used and have found no room yet."""
    evicted: int = 0
    """Gave way to tables that are used more."""
    no_room: int = 0
    """Times that a table found no room."""
    missing: int = 0
    """Binaries that have no table though they should; each counts once."""
    rules_refused: int = 0
    """Rules that found no number; their rows say "unsupported"."""


@dataclass(slots=True)
class _Table:
    binary: Binary
    placed: Placed = TableMiss.PENDING
    users: set[ProcessKey] = field(default_factory=set)
    samples: float = 0.0
    rows_wanted: int = 0
    """Above 0: it was here and found no room."""
    unused_windows: int = 0
    files: tuple[FileStamp, ...] = ()
    """Those that the kernel knows to be walked by this table."""


class ResidentTables:
    """For one thread."""

    def __init__(self, maps: UnwindMaps, source: TableSource, open_binary: OpenBinary, files_of: FilesOf) -> None:
        self._maps = maps
        self._files_of = files_of
        self._source = source
        self._open_binary = open_binary
        self._tables: dict[BinaryId, _Table] = {}
        self._waiting: set[BinaryId] = set()
        """Those whose table is on its way."""
        self._counts = TableCounts()

    @property
    def is_waiting(self) -> bool:
        """Whether tables are on their way."""
        return bool(self._waiting)

    def use(self, key: ProcessKey, binary: Binary) -> Placed:
        """Where the table of a binary lies, for a process that maps it; asked for when it is new."""
        table = self._tables.get(binary.id)
        if table is None:
            table = self._tables[binary.id] = _Table(binary)
            self._ask(table)
        table.users.add(key)
        table.unused_windows = 0
        self._tell_of_files(table)
        return table.placed

    def leave(self, key: ProcessKey, binaries: Iterable[BinaryId]) -> None:
        """A process is gone, or maps these no more."""
        for binary_id in binaries:
            self._tables[binary_id].users.discard(key)

    def arrived(self) -> dict[ProcessKey, set[BinaryId]]:
        """Take what has come, and ask again for what was not taken; gives the binaries whose walk changed, by process."""
        ready = self._source.take_ready()
        changed: dict[ProcessKey, set[BinaryId]] = {}
        for binary_id in sorted(self._waiting, key=lambda binary_id: -self._tables[binary_id].samples):
            table = self._tables[binary_id]
            if binary_id in ready or not self._source.is_pending(binary_id):
                self._ask(table)
                if table.placed is not TableMiss.PENDING:
                    for key in table.users:
                        changed.setdefault(key, set()).add(binary_id)
        return changed

    def placed(self, binary_id: BinaryId) -> Placed:
        """Where the table of a binary that is in use lies."""
        return self._tables[binary_id].placed

    def end_window(self, samples: Mapping[ProcessKey, int]) -> set[ProcessKey]:
        """Count use, free what is unused, make room; gives the processes whose walks change. Call it after the maps have settled."""
        sampled = frozenset(samples)
        for table in list(self._tables.values()):
            table.samples = table.samples / 2 + sum(samples[key] for key in table.users & sampled)
            table.unused_windows = 0 if table.users else table.unused_windows + 1
            if table.unused_windows > UNUSED_WINDOWS:
                self._take_out(table)
                del self._tables[table.binary.id]
                self._waiting.discard(table.binary.id)
        self._source.prefer({binary_id: self._tables[binary_id].samples for binary_id in self._waiting})
        waiting = sorted((t for t in self._tables.values() if t.rows_wanted and t.users), key=lambda t: -t.samples)
        changed: set[ProcessKey] = set()
        for table in waiting[:_MOST_PLACED]:
            if self._maps.has_room(table.rows_wanted):  # To lay out a table of 800,000 rows costs 30 ms, to load it as much again.
                self._ask(table)
            if table.rows_wanted:
                changed |= self._make_room(table)
            else:
                changed |= table.users
        return changed

    def counts(self) -> TableCounts:
        """A copy."""
        here = [table.placed for table in self._tables.values() if isinstance(table.placed, TablePlace)]
        waiting = sum(
            bool(table.users) and table.rows_wanted > 0 and not isinstance(table.placed, TablePlace) for table in self._tables.values()
        )
        rows = sum(place.row_count for place in here)
        return replace(self._counts, tables=len(here), rows=rows, waiting=waiting, rules_refused=self._maps.rules_refused)

    def _ask(self, table: _Table) -> None:
        answer = self._answer(table.binary)
        self._waiting.discard(table.binary.id)
        if isinstance(answer, UnwindTable):
            self._place(table, answer)
            return
        table.placed = answer
        self._tell_of_files(table)
        if answer is TableMiss.PENDING:
            self._waiting.add(table.binary.id)
        if answer not in (TableMiss.PENDING, TableMiss.NO_RULES):
            self._miss(table, answer)

    def _miss(self, table: _Table, why: TableMiss) -> None:
        self._counts.missing += 1
        log.warning("no unwind table path=%s reason=%s", table.binary.path.decode("utf-8", "replace"), why.name)

    def _answer(self, binary: Binary) -> UnwindTable | TableMiss:
        try:
            fd = self._open_binary(binary)
        except OSError as error:
            log.warning("binary not opened path=%s reason=%s", binary.path.decode("utf-8", "replace"), error.strerror)
            return TableMiss.PENDING  # No descriptors or no memory left: it is asked for again.
        try:
            return self._source.get(binary.id, fd)
        finally:
            if fd is not None:
                os.close(fd)

    def _place(self, table: _Table, found: UnwindTable) -> None:
        packed = self._maps.pack(found)
        if packed is None:
            table.placed = TableMiss.TOO_LARGE if len(found.addresses) else TableMiss.NO_RULES
            self._tell_of_files(table)
            if table.placed is TableMiss.TOO_LARGE:
                self._miss(table, TableMiss.TOO_LARGE)
            return
        place = self._maps.put_table(packed)
        table.rows_wanted = 0 if place is not None else len(packed.rows)
        table.placed = place if place is not None else TableMiss.PENDING
        self._tell_of_files(table)
        self._counts.no_room += place is None

    def _make_room(self, wanting: _Table) -> set[ProcessKey]:
        """Take out tables that are used less than half as much as `wanting`, until there is room in the next window."""
        changed: set[ProcessKey] = set()
        here = sorted((t for t in self._tables.values() if isinstance(t.placed, TablePlace)), key=lambda t: t.samples)
        for table in here:
            if self._maps.free_rows + self._maps.retired_rows >= wanting.rows_wanted or table.samples * 2 >= wanting.samples:
                break
            assert isinstance(table.placed, TablePlace)
            self._counts.evicted += 1
            log.info("unwind table evicted path=%s rows=%d", table.binary.path.decode("utf-8", "replace"), table.placed.row_count)
            rows = table.placed.row_count
            self._take_out(table)
            table.rows_wanted = rows
            changed |= table.users
        return changed

    def _take_out(self, table: _Table) -> None:
        place, table.placed = table.placed, TableMiss.PENDING
        self._tell_of_files(table)
        if isinstance(place, TablePlace):
            self._maps.give_up_table(place)

    def _tell_of_files(self, table: _Table) -> None:
        """Have the kernel know which files are walked by this table, as soon as they or the table are here and no longer than it."""
        walk = _walk_of(table.placed)
        files = self._files_of(table.binary) if walk is not None else ()
        if walk is None and table.files:
            self._maps.files.remove(table.binary.id)
        elif walk is not None and files != table.files:
            self._maps.files.set(table.binary.id, files, table.binary.segments, walk)
        table.files = files


def _walk_of(placed: Placed) -> FileWalk | None:
    if isinstance(placed, TablePlace):
        return FileWalk(placed.first_page, placed.low_page, placed.page_count, WalkKind.TABLE)
    return FileWalk(0, 0, 0, WalkKind.FRAME_POINTERS) if placed is TableMiss.NO_RULES else None
