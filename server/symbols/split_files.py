# SPDX-License-Identifier: Apache-2.0
"""Finds the .dwo and .dwp files of a binary, and puts them into one file for the child that makes its table.

Looked for are: what was uploaded; APP.dwp beside the binary and in the configured roots, there by build id too; each .dwo file below the
binary's directory, below the directory that it was compiled in when the binary lies in that, and in the roots. Names of .dwo files stand
in the binary: they never lead out of these directories, and a file counts only when it holds a unit with the id that is looked for.
"""

import logging
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from emberwatch.v1 import batch_pb2 as pb
from server.store.protocol import BinaryInfo
from server.symbols.build_result import SplitName
from server.symbols.disk_room import refusal_for_room
from server.symbols.elf_probe import Probe
from server.symbols.identity import BinaryKey
from server.symbols.rooted import open_in_root
from server.symbols.settings import SymbolSettings
from server.symbols.source_files import Held, SourceFiles
from server.symbols.sources import Origin, close_all
from server.symbols.split_ids import U64, common_ids, split_ids
from server.symbols.split_packs import SplitPacks, pack_id

log = logging.getLogger(__name__)

SPLIT_KIND = 0xD0
"""Stands for a kind of build id: such files have none, and are kept by the id of their unit, or by a digest of all of them."""
MAX_FILES = 4096
MAX_BYTES = 2 << 30
"""Of all .dwo and .dwp files of one binary."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Some files one after another; the descriptor is the holder's to close."""

    descriptor: int
    sizes: tuple[int, ...]


class SplitFiles:
    """Remembers what is missing, by binary, until the process ends. Any thread."""

    def __init__(self, settings: SymbolSettings, files: SourceFiles) -> None:
        self._settings = settings
        self._files = files
        self._packs = SplitPacks(settings.directory, settings.free_min_bytes)
        self._lock = threading.Lock()
        self._missing: dict[BinaryKey, tuple[SplitName, ...]] = {}
        self._tried: dict[BinaryKey, frozenset[int]] = {}
        """Ids of units that files were found for, or never asked for: to make the table once more would give no more of them."""

    def note(self, key: BinaryKey, missing: Sequence[SplitName], asked: Sequence[SplitName]) -> None:
        """What is missing of a binary now, and what was asked for: of very many units only the first are (MAX_MISSING)."""
        behind = {one.dwo_id for one in missing}.difference(one.dwo_id for one in asked)
        with self._lock:
            if missing:
                self._missing[key] = tuple(missing)
                self._tried[key] = self._tried.get(key, frozenset()) | behind
            else:
                self._missing.pop(key, None)
                self._tried.pop(key, None)

    def keep(self, ids: U64, origin: Origin, descriptor: int, found: Probe) -> str:
        """Keep a copy of a .dwo or .dwp file with these units. Says why it was not kept; "" when it was."""
        refusal = self._files.keep(held_by(ids), origin, descriptor, found)
        if not refusal and ids.size > 1:
            try:
                self._packs.add(ids)
            except OSError as error:
                return f"its units cannot be written: {error.strerror}"
        return refusal

    def wanting(self, ids: U64) -> list[BinaryKey]:
        """The binaries that miss units with some of these ids."""
        with self._lock:
            return [key for key, missing in self._missing.items() if common_ids({one.dwo_id for one in missing}, ids)]

    def has_news(self, key: BinaryKey, binary: BinaryInfo | None) -> bool:
        """Whether a file has come that holds what is missing."""
        with self._lock:
            missing, tried = self._missing.get(key, ()), self._tried.get(key, frozenset())
        fresh = [one for one in missing if one.dwo_id not in tried]
        found = next(self._open(key, binary, fresh), None) if fresh else None
        if found is not None:
            os.close(found[0])
        return found is not None

    def bundle(self, key: BinaryKey, binary: BinaryInfo | None, missing: Sequence[SplitName]) -> Bundle | None:
        """What there is of the missing ones; None when there is nothing, or no room for it.

        What is left out is not looked for again until the process ends or somebody asks: it would be left out again.
        """
        with tempfile.TemporaryFile(dir=self._settings.directory) as together:
            sizes: list[int] = []
            tried: set[int] = set()
            for descriptor, ids in self._open(key, binary, missing):
                tried |= ids
                size = os.fstat(descriptor).st_size
                try:
                    refusal = self._refusal(sizes, size)
                    if refusal:
                        log.warning("split file left out binary=%s bytes=%d reason=%s", key.digest, size, refusal)
                        continue
                    _append(together.fileno(), descriptor)
                    sizes.append(size)
                except OSError as error:
                    log.warning("split file cannot be read binary=%s reason=%s", key.digest, error.strerror)
                    tried.update(one.dwo_id for one in missing)
                    sizes.clear()
                    break
                finally:
                    os.close(descriptor)
            with self._lock:
                self._tried[key] = frozenset(tried)
            return Bundle(os.dup(together.fileno()), tuple(sizes)) if sizes else None

    def _refusal(self, sizes: Sequence[int], size: int) -> str:
        """Why a file may not be put behind those of these sizes; "" when it may."""
        if len(sizes) >= MAX_FILES or sum(sizes) + size > MAX_BYTES:
            return f"at most {MAX_FILES} files of {MAX_BYTES} bytes together are read"
        return refusal_for_room(self._settings.directory, size, self._settings.free_min_bytes)

    def _open(self, key: BinaryKey, binary: BinaryInfo | None, missing: Sequence[SplitName]) -> Iterator[tuple[int, set[int]]]:
        """Files with units that are missing, each unit once, and which those are; the caller closes them."""
        left = {one.dwo_id for one in missing}
        for descriptor in self._candidates(key, binary, missing, left):
            found = common_ids(left, split_ids(descriptor))
            left -= found
            if found:
                yield descriptor, found
            else:
                os.close(descriptor)
            if not left:
                return

    def _candidates(self, key: BinaryKey, binary: BinaryInfo | None, missing: Sequence[SplitName], left: set[int]) -> Iterator[int]:
        for pack in self._packs.holding(left):
            yield from self._kept(pack)
        for one in missing:
            if one.dwo_id in left:
                yield from self._kept(_id_bytes(one.dwo_id))
        if not self._settings.local_files:
            return
        path = PurePosixPath(os.fsdecode(binary.path)) if binary is not None and binary.path.startswith(b"/") else None
        for root, place in self._packed_places(key, path):
            yield from _opened(root, place)
        for one in missing:
            if one.dwo_id in left:
                for root, place in self._places(one, path):
                    yield from _opened(root, place)

    def _kept(self, held_id: bytes) -> Iterator[int]:
        kept = self._files.open(BinaryKey(pb.BINARY_KIND_ELF, SPLIT_KIND, held_id, b""), ())
        close_all(kept[1:])
        yield from (source.descriptor for source in kept[:1])

    def _packed_places(self, key: BinaryKey, path: PurePosixPath | None) -> Iterator[tuple[Path, PurePosixPath]]:
        digits = key.build_id.hex()
        if path is not None:
            yield Path(path.parent), PurePosixPath(f"{path.name}.dwp")
        for root in self._settings.debug_roots:
            if key.build_id_kind == pb.BUILD_ID_KIND_GNU:
                yield root, PurePosixPath(".build-id", digits[:2], f"{digits[2:]}.dwp")
            if path is not None:
                yield root, PurePosixPath(f"{path}.dwp")

    def _places(self, one: SplitName, path: PurePosixPath | None) -> Iterator[tuple[Path, PurePosixPath]]:
        directory = PurePosixPath(os.fsdecode(one.directory))
        whole = directory / os.fsdecode(one.name)
        if path is not None:
            if whole.is_relative_to(path.parent):
                yield Path(path.parent), whole.relative_to(path.parent)
            yield Path(path.parent), PurePosixPath(whole.name)
            if directory.is_absolute() and len(directory.parts) > 1 and path.is_relative_to(directory) and whole.is_relative_to(directory):
                yield Path(directory), whole.relative_to(directory)
        for root in self._settings.debug_roots:
            yield root, whole


def held_by(ids: U64) -> Held:
    """By which a file with these units is kept; there is one at least."""
    return Held(SPLIT_KIND, _id_bytes(int(ids[0])) if ids.size == 1 else pack_id(ids))


def _id_bytes(dwo_id: int) -> bytes:
    return dwo_id.to_bytes(8, "big")


def _opened(root: Path, place: PurePosixPath) -> Iterator[int]:
    descriptor = open_in_root(root, place)
    if descriptor is not None:
        yield descriptor


def _append(to: int, descriptor: int) -> None:
    place = 0
    while sent := os.sendfile(to, descriptor, place, 64 << 20):
        place += sent
