# SPDX-License-Identifier: Apache-2.0
"""Keeps the files that names are made from: what agents, people and debuginfod servers sent, bounded by bytes.

A better source may come a week after a poorer one, and the best table is made of both: a stripped binary holds the stubs and dynamic
symbols, its debug file all the rest. For each build id (content hash where there is none) one file of each role is kept, the better
one; the files of the build id that was used longest ago leave first. What is here makes new tables without asking anybody again.

    files/ab/cdef…/ROLE.ORIGIN[.CONTENT HASH]

ab/cdef… is a digest of the build id: nothing that a client sends becomes part of a path.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import Quality
from server.symbols.debug_links import probe_or_none
from server.symbols.disk_room import refusal_for_room
from server.symbols.elf_probe import Probe
from server.symbols.identity import BinaryKey
from server.symbols.rooted import OPEN_FLAGS
from server.symbols.sources import Origin, Source

log = logging.getLogger(__name__)

_PIECE_BYTES = 4 << 20
_QUALITIES = ((4, Quality.DWARF), (2, Quality.FULL), (1, Quality.DYNAMIC))
BETTER_IS_HERE = "a file that tells more is here already"


class Role(StrEnum):
    """What a file is for."""

    BINARY = "binary"
    DEBUG = "debug"
    LIST = "list"
    """The list of symbols of a running kernel or module (kallsyms)."""


@dataclass(frozen=True, slots=True)
class Held:
    """Which binaries a file belongs to: those with this build id; of a file that was sent for one binary only that one."""

    build_id_kind: int
    build_id: bytes
    content_hash: bytes = b""

    @property
    def digest(self) -> str:
        """32 hex digits of the build id; of the content hash where there is no build id."""
        return hashlib.blake2b(bytes([self.build_id_kind]) + (self.build_id or self.content_hash), digest_size=16).hexdigest()

    @property
    def is_known(self) -> bool:
        """False when nothing tells whose the file is."""
        return bool(self.build_id or self.content_hash)


def held_of(key: BinaryKey) -> Held:
    """Whose files may name a binary."""
    return Held(key.build_id_kind, key.build_id, key.content_hash)


def held_of_file(found: Probe, content_hash: bytes) -> Held:
    """Whose file it is by what stands in it: GNU build id, else Go's, else the content hash, which tells of a file with code only.

    A binary and the same one stripped have one build id and two content hashes, so that the hash counts only where there is no id.
    """
    if found.build_ids.gnu:
        return Held(pb.BUILD_ID_KIND_GNU, found.build_ids.gnu)
    if found.build_ids.go:
        return Held(pb.BUILD_ID_KIND_GO, found.build_ids.go)
    return Held(pb.BUILD_ID_KIND_NONE, b"", content_hash if found.has_code else b"")


def worth_of(found: Probe) -> int:
    """How much a file could tell: with DWARF more than with a symbol table, with that more than with dynamic symbols."""
    return 4 * found.has_dwarf + 2 * found.has_symtab + found.has_dynamic_symbols


def quality_of(worth: int) -> Quality:
    """The best table that can be made of a file of this worth."""
    return next((quality for least, quality in _QUALITIES if worth >= least), Quality.EMPTY)


class SourceFiles:
    """Files by build id. Safe for several threads."""

    def __init__(self, directory: Path, max_bytes: int, free_min_bytes: int) -> None:
        """Take over a directory, whatever it holds; half-written files go."""
        self._root = directory / "files"
        self._max_bytes = max_bytes
        self._free_min_bytes = free_min_bytes
        self._lock = threading.Lock()
        self._total_bytes: int | None = None
        """Of all files, counted once and again whenever some must leave; None before."""
        self._root.mkdir(parents=True, exist_ok=True)
        for leftover in self._root.glob("*.part"):
            leftover.unlink(missing_ok=True)

    def keep(self, held: Held, origin: Origin, descriptor: int, found: Probe) -> str:
        """Keep a copy of a file unless a better one is here. Says why it was not kept; "" when it was."""
        size = os.fstat(descriptor).st_size
        role = Role.BINARY if found.has_code or origin == Origin.AGENT else Role.DEBUG
        content = f".{held.content_hash.hex()}" if held.content_hash else ""
        with self._lock, self._counted(held):
            try:
                rivals = [path for path in self._files(held) if path.name.startswith(f"{role}.") and self._content(path) == content]
                if any(self._worth(path) > worth_of(found) for path in rivals):
                    return BETTER_IS_HERE
                if size > self._max_bytes:
                    return f"{size} bytes, at most {self._max_bytes} are kept"
                refusal = refusal_for_room(self._root, size, self._free_min_bytes)
                if refusal:
                    return refusal
                place = self._place(held)
                place.mkdir(parents=True, exist_ok=True)
                fresh = place / f"{role}.{origin}{content}"
                self._copy(descriptor, fresh)
                for path in rivals:
                    if path != fresh:
                        path.unlink(missing_ok=True)
            except OSError as error:  # The build goes on with the descriptor it has; only the copy is missing.
                log.warning("symbol source not kept origin=%s reason=%s", origin, error.strerror)
                return f"it cannot be written: {error.strerror}"
        return ""

    def keep_list(self, key: BinaryKey, descriptor: int) -> str:
        """Keep a copy of the list of a kernel or module in place of an older one. Says why it was not kept; "" when it was."""
        with self._lock, self._counted(held_of(key)):
            try:
                refusal = refusal_for_room(self._root, os.fstat(descriptor).st_size, self._free_min_bytes)
                if not refusal:
                    place = self._place(held_of(key))
                    place.mkdir(parents=True, exist_ok=True)
                    self._copy(descriptor, place / _list_name(key))
                return refusal
            except OSError as error:
                log.warning("list of symbols not kept reason=%s", error.strerror)
                return f"it cannot be written: {error.strerror}"

    def open_list(self, key: BinaryKey) -> int | None:
        """The list of a kernel or module; the caller closes it."""
        try:
            return os.open(self._place(held_of(key)) / _list_name(key), OPEN_FLAGS | os.O_NOFOLLOW)
        except OSError:
            return None

    def open(self, key: BinaryKey, code_sizes: Sequence[int]) -> list[Source]:
        """The files of a binary, the binary itself first; the caller closes them.

        `code_sizes` are those of the binary that runs (empty when not known): a file with other code under the same build id (C38) is
        passed over.
        """
        found = []
        for path in self._files_of(key):
            if path.name.startswith(f"{Role.LIST}."):
                continue
            with contextlib.suppress(OSError):
                descriptor = os.open(path, OPEN_FLAGS | os.O_NOFOLLOW)
                seen = probe_or_none(descriptor)
                if seen is None or (code_sizes and seen.code_sizes and tuple(code_sizes) != seen.code_sizes):
                    os.close(descriptor)
                else:
                    found.append(Source(Origin(path.name.split(".")[1]), descriptor))
        if found:
            with contextlib.suppress(OSError):
                os.utime(self._place(held_of(key)))
        return found

    def worth(self, held: Held) -> int:
        """Of the file that tells most (see worth_of); 0 when there is none."""
        with contextlib.suppress(OSError):
            return max((self._worth(path) for path in self._files(held)), default=0)
        return 0

    def kept_bytes(self, key: BinaryKey) -> int:
        """Of the files of a binary together."""
        size = 0
        for path in self._files_of(key):
            with contextlib.suppress(OSError):
                size += path.stat().st_size
        return size

    def newest_unix_s(self, key: BinaryKey) -> float:
        """When the newest file of a binary came; 0 when there is none."""
        newest = 0.0
        for path in self._files_of(key):
            with contextlib.suppress(OSError):
                newest = max(newest, path.stat().st_ctime)
        return newest

    def drop(self, key: BinaryKey, origin: Origin) -> None:
        """Forget what an origin sent for a binary: it proved to be of no use."""
        with self._lock, self._counted(held_of(key)):
            for path in self._files_of(key):
                if path.name.split(".")[1] == origin:
                    path.unlink(missing_ok=True)

    def size_bytes(self) -> int:
        """Of all files."""
        return sum(size for _, _, size in self._directories())

    def _place(self, held: Held) -> Path:
        return self._root / held.digest[:2] / held.digest[2:]

    def _files(self, held: Held) -> list[Path]:
        known = {(role.value, origin.value) for role in Role for origin in Origin}
        try:
            return [path for path in self._place(held).iterdir() if tuple(path.name.split(".")[:2]) in known]
        except OSError:
            return []

    def _files_of(self, key: BinaryKey) -> list[Path]:
        """Without those that were sent for another binary with the same build id."""
        return [path for path in sorted(self._files(held_of(key))) if self._content(path) in ("", f".{key.content_hash.hex()}")]

    def _content(self, path: Path) -> str:
        return "".join(f".{part}" for part in path.name.split(".")[2:])

    def _worth(self, path: Path) -> int:
        descriptor = os.open(path, OPEN_FLAGS | os.O_NOFOLLOW)
        try:
            found = probe_or_none(descriptor)
            return -1 if found is None else worth_of(found)
        finally:
            os.close(descriptor)

    def _copy(self, descriptor: int, place: Path) -> None:
        """Complete or not at all: written beside, then renamed."""
        part = self._root / f"{place.parent.parent.name}{place.parent.name}.part"
        try:
            with part.open("wb") as file:
                for piece in _pieces(descriptor):
                    file.write(piece)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)

    def _directories(self) -> list[tuple[float, Path, int]]:
        found = []
        for path in self._root.glob("??/*"):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime, path, _bytes_in(path)))
        return sorted(found)

    @contextmanager
    def _counted(self, held: Held) -> Iterator[None]:
        """Keep the total right over a change to the files of one build id, and the bound: only behind it all files are looked at."""
        place = self._place(held)
        before = _bytes_in(place)
        yield
        if self._total_bytes is not None:
            self._total_bytes += _bytes_in(place) - before
        if self._total_bytes is None or self._total_bytes > self._max_bytes:
            self._evict()

    def _evict(self) -> None:
        directories = self._directories()
        total = sum(size for _, _, size in directories)
        for _, path, size in directories[:-1]:
            if total <= self._max_bytes:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= size
            log.info("symbol sources left the disk bytes=%d", size)
        self._total_bytes = total


def _list_name(key: BinaryKey) -> str:
    return f"{Role.LIST}.{Origin.AGENT}.{key.content_hash.hex()}" if key.content_hash else f"{Role.LIST}.{Origin.AGENT}"


def _bytes_in(directory: Path) -> int:
    try:
        return sum(file.stat().st_size for file in directory.iterdir())
    except OSError:
        return 0


def _pieces(descriptor: int) -> Iterator[bytes]:
    place = 0
    while piece := os.pread(descriptor, _PIECE_BYTES, place):
        yield piece
        place += len(piece)
