# SPDX-License-Identifier: Apache-2.0
"""Packed tables on disk, one file a binary, bounded by bytes: the one that was used longest ago leaves first.

A file is written beside and renamed. It is not synced: what a crash leaves behind does not pass its checksum and is made anew. When the
disk refuses, tables are made again at the next start, which costs time and nothing else.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.records.unwind import TableMiss, UnwindTable
from agent.unwind.table_file import HEAD_BYTES, MAX_PACKED_BYTES, TableError, reason_of, unpack_table

log = logging.getLogger(__name__)

_SUFFIX, _TEMPORARY = ".unwind", ".unwind-part"
_LASTING = (TableMiss.NO_RULES, TableMiss.NOT_SUPPORTED, TableMiss.MALFORMED, TableMiss.TOO_LARGE)
"""Reasons that hold as long as the file is the same."""


@dataclass(frozen=True, slots=True)
class KeptTables:
    """What a directory of tables holds."""

    tables: int
    size_bytes: int
    misses: Mapping[TableMiss, int]
    """Files that are known to have none."""


def kept_tables(directory: Path) -> KeptTables:
    """Look through a directory without taking it over; only the heads of the files are read. What is not ours is left out."""
    tables, size_bytes, misses = 0, 0, Counter[TableMiss]()
    try:
        paths = [entry.path for entry in os.scandir(directory) if entry.name.endswith(_SUFFIX)]
    except OSError:
        paths = []
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                found = reason_of(file.read(HEAD_BYTES))
                size_bytes += os.fstat(file.fileno()).st_size
        except (OSError, TableError):
            continue
        tables += found is None
        misses.update([found] if found is not None else [])
    return KeptTables(tables, size_bytes, misses)


class TableCache:
    """Tables by digest of identity. Not for several threads at once."""

    def __init__(self, directory: Path, most_bytes: int) -> None:
        """Take over a directory, whatever it holds; other files in it are left alone."""
        self._directory = directory
        self._most_bytes = most_bytes
        self.damaged = 0
        """Files that were dropped because they could not be read back."""
        self._sizes = self._scan()

    @property
    def size_bytes(self) -> int:
        """Of all tables."""
        return sum(self._sizes.values())

    def get(self, digest: bytes) -> UnwindTable | TableMiss | None:
        """What is known of a binary; None when nothing is."""
        name = digest.hex()
        if name not in self._sizes:
            return None
        path = self._directory / (name + _SUFFIX)
        try:
            with path.open("rb") as file:
                found = unpack_table(file.read(MAX_PACKED_BYTES + 1), digest)
            os.utime(path)
        except (OSError, TableError) as error:
            log.info("unwind table dropped file=%s reason=%s", path.name, error)
            self.damaged += 1
            self._drop(name)
            return None
        self._sizes[name] = self._sizes.pop(name)
        return found

    def put(self, digest: bytes, packed: bytes, found: UnwindTable | TableMiss) -> None:
        """Keep the packed form of `found`. Reasons that may pass are not kept."""
        if isinstance(found, TableMiss) and found not in _LASTING:
            return
        name = digest.hex()
        part = self._directory / (name + _TEMPORARY)
        try:
            part.write_bytes(packed)
            part.chmod(0o600)
            part.replace(self._directory / (name + _SUFFIX))
        except OSError as error:
            log.warning("unwind table not kept file=%s reason=%s", part.name, error.strerror)
            return
        self._sizes.pop(name, None)
        self._sizes[name] = len(packed)
        while self.size_bytes > self._most_bytes and len(self._sizes) > 1:
            self._drop(next(iter(self._sizes)))

    def _scan(self) -> dict[str, int]:
        """Sizes of the files that are there, those used longest ago first."""
        found = []
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for entry in os.scandir(self._directory):
                if entry.name.endswith(_TEMPORARY):
                    Path(entry.path).unlink(missing_ok=True)
                elif entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime_ns, entry.name.removesuffix(_SUFFIX), status.st_size))
        except OSError as error:
            log.warning("unwind tables unreadable directory=%s reason=%s", self._directory, error.strerror)
        return {name: size for _, name, size in sorted(found)}

    def _drop(self, name: str) -> None:
        self._sizes.pop(name, None)
        try:
            (self._directory / (name + _SUFFIX)).unlink(missing_ok=True)
        except OSError as error:
            log.warning("unwind table stays file=%s reason=%s", name, error.strerror)
