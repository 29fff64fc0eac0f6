# SPDX-License-Identifier: Apache-2.0
"""The table files on disk, bounded by bytes, and those of them that are open.

A table is `tables/ab/cdef....names`; the name is a digest of the identity, so nothing a client sends becomes part of a path. A
file appears complete or not at all: it is written beside, synced and renamed. The one that was used longest ago leaves first; a
leaving table only means that its binary is wanted again.
"""

import contextlib
import logging
import os
import threading
from collections import OrderedDict
from pathlib import Path

from server.symbols.identity import BinaryKey
from server.symbols.table import Table, TableError, open_table

log = logging.getLogger(__name__)

MAX_OPEN_TABLES = 2048
SUFFIX = ".names"


class TableCache:
    """Tables by identity. Safe for several threads."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        """Take over a directory, whatever it holds: half-written files go, foreign ones stay and are left alone."""
        self._root = directory / "tables"
        self._root.mkdir(parents=True, exist_ok=True)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._open: OrderedDict[BinaryKey, Table] = OrderedDict()
        self._used: set[BinaryKey] = set()
        for leftover in self._root.glob("*.part"):
            leftover.unlink(missing_ok=True)

    @property
    def build_directory(self) -> Path:
        """Where a new table is written before it is added: on the same file system."""
        return self._root

    def get(self, key: BinaryKey) -> Table | None:
        """The table of a binary; None when there is none. A file that cannot be used is removed."""
        with self._lock:
            table = self._open.get(key)
            if table is not None:
                self._open.move_to_end(key)
                self._used.add(key)
                return table
            table = self._load(key)
            if table is not None:
                self._remember(key, table)
            return table

    def add(self, key: BinaryKey, built: Path) -> Table:
        """Take over the file `built` as the table of `key` unless a better one is there. Raises TableError, OSError."""
        with self._lock:
            fresh = _open(built, key)
            present = self._open.get(key) or self._load(key)
            if present is not None and _worth(present) > _worth(fresh):
                built.unlink()
                return present
            place = self._place(key)
            place.parent.mkdir(exist_ok=True)
            built.chmod(0o600)
            built.replace(place)
            _sync_directory(place.parent)
            self._remember(key, fresh)
            self._evict()
            return fresh

    def size_bytes(self) -> int:
        """Bytes of all table files."""
        return sum(size for _, _, size in self._files())

    def _place(self, key: BinaryKey) -> Path:
        digest = key.digest
        return self._root / digest[:2] / (digest[2:] + SUFFIX)

    def _load(self, key: BinaryKey) -> Table | None:
        place = self._place(key)
        try:
            table = _open(place, key)
            self._used.add(key)
            return table
        except FileNotFoundError:
            return None
        except (TableError, OSError) as error:
            log.warning("symbol table dropped file=%s reason=%s", place.name, error)
            place.unlink(missing_ok=True)
            return None

    def _remember(self, key: BinaryKey, table: Table) -> None:
        self._open[key] = table
        self._open.move_to_end(key)
        while len(self._open) > MAX_OPEN_TABLES:
            self._open.popitem(last=False)

    def _files(self) -> list[tuple[float, Path, int]]:
        found = []
        for path in self._root.glob("??/*" + SUFFIX):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            found.append((status.st_mtime, path, status.st_size))
        return sorted(found)

    def _evict(self) -> None:
        """Files leave by their time of last change, which is set here for those that were used since the last time."""
        for key in self._used:
            with contextlib.suppress(FileNotFoundError):
                os.utime(self._place(key))
        self._used.clear()
        files = self._files()
        total = sum(size for _, _, size in files)
        for _, path, size in files[:-1]:
            if total <= self._max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size
            log.info("symbol table left the cache file=%s bytes=%d", path.name, size)


def _worth(table: Table) -> tuple[int, bool]:
    """Of tables with equal sources the one with lines is better: the debug data of the other was too big, or broken."""
    return table.facts.quality, table.inlines is not None


def _open(path: Path, key: BinaryKey) -> Table:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return open_table(descriptor, key)
    finally:
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
