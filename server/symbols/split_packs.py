# SPDX-License-Identifier: Apache-2.0
"""Which units the uploaded .dwp files hold, so that each of them leads to its file, also after a restart.

    packs/DIGEST    ids of the units, ascending, u64 little-endian each

DIGEST is one of all ids, so that two versions of a program that share units are two files. There are no more of these than the bounds
say; the one that was used longest ago leaves, and its .dwp file is as if it had not come.
"""

import contextlib
import hashlib
import logging
import os
import re
import threading
from collections.abc import Collection
from pathlib import Path

import numpy as np

from server.symbols.disk_room import refusal_for_room
from server.symbols.split_ids import U64, common_ids

log = logging.getLogger(__name__)

_NAME = re.compile(r"[0-9a-f]{32}")
MAX_PACKS = 256
MAX_BYTES = 64 << 20
"""Of all ids together: eight million units."""


class SplitPacks:
    """Ids by file. Any thread."""

    def __init__(self, directory: Path, free_min_bytes: int) -> None:
        """Take over a directory, whatever it holds; half-written files go."""
        self._root = directory / "packs"
        self._free_min_bytes = free_min_bytes
        self._lock = threading.Lock()
        self._root.mkdir(parents=True, exist_ok=True)
        for leftover in self._root.glob("*.part"):
            leftover.unlink(missing_ok=True)

    def add(self, ids: U64) -> None:
        """Remember what a .dwp file holds. Raises OSError."""
        data = ids.astype("<u8").tobytes()
        place = self._root / pack_id(ids).hex()
        with self._lock:
            refusal = refusal_for_room(self._root, len(data), self._free_min_bytes)
            if refusal:  # The file is as if it had not come.
                log.warning("units of a .dwp file not remembered reason=%s", refusal)
                return
            part = place.with_suffix(".part")
            try:
                part.write_bytes(data)
                part.replace(place)
            finally:
                part.unlink(missing_ok=True)
            self._evict()

    def holding(self, wanted: Collection[int]) -> list[bytes]:
        """By what the .dwp files with some of these units are kept, see pack_id; the one that has most of them first."""
        found = []
        for path in self._files() if wanted else ():
            with contextlib.suppress(OSError):  # It has just left.
                some = common_ids(wanted, np.fromfile(path, "<u8").astype(np.uint64))
                if some:
                    os.utime(path)
                    found.append((-len(some), bytes.fromhex(path.name)))
        return [name for _, name in sorted(found)]

    def _files(self) -> list[Path]:
        return [path for path in self._root.iterdir() if _NAME.fullmatch(path.name) and path.is_file()]

    def _evict(self) -> None:
        seen = sorted((path.stat().st_mtime, path, path.stat().st_size) for path in self._files())
        total = sum(size for *_, size in seen)
        for count, (_, path, size) in zip(range(len(seen), 1, -1), seen, strict=False):
            if count <= MAX_PACKS and total <= MAX_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= size


def pack_id(ids: U64) -> bytes:
    """16 bytes that stand for the build id of a .dwp file with these units, ascending."""
    return hashlib.blake2b(ids.astype("<u8").tobytes(), digest_size=16).digest()
