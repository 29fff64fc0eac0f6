# SPDX-License-Identifier: Apache-2.0
"""Tells the kernel by which table code of a file is walked, so that a new program of known files is walked from its first sample on.

    inode, size, time of change -> table, and the segments that hold code (bpf/shared/look.h)

The device is no part of the key: on an overlay the kernel sees another one than stat(). Two files that are alike in all of it and are
different binaries are both left out.
"""

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.errors import KernelError
from agent.kernel import bpf
from agent.records.binary import BinaryId, FileStamp, Segment

SEGMENTS = 2
"""FILE_SEGMENTS in bpf/shared/unwind.h: files with more segments of code are not told of."""
_FILE_KEY = struct.Struct("<QQQI4x")
_FILE = struct.Struct("<IIII")
_SEGMENT = struct.Struct("<QQQ")
_PAGE_BYTES = 4096
_EXECUTABLE = 1


@dataclass(frozen=True, slots=True)
class FileWalk:
    """How code of a file is walked: struct unwind_file without its segments; `kind` is a WalkKind."""

    first_page: int
    low_page: int
    page_count: int
    kind: int


@dataclass(slots=True)
class _Claims:
    """Binaries that a stamp stands for."""

    values: dict[BinaryId, bytes] = field(default_factory=dict)


class UnwindFiles:
    """For one thread. `descriptor` is that of `unwind_files`; the caller keeps it open."""

    def __init__(self, descriptor: int) -> None:
        self._map = descriptor
        self._claims: dict[FileStamp, _Claims] = {}
        self._stamps: dict[BinaryId, tuple[FileStamp, ...]] = {}

    def set(self, binary_id: BinaryId, stamps: Sequence[FileStamp], segments: Sequence[Segment], walk: FileWalk) -> None:
        """Have code of these files, all of them this binary, walked so. In place of what was said of the binary before."""
        self.remove(binary_id)
        value = _value(segments, walk)
        if value is None:
            return
        self._stamps[binary_id] = tuple(dict.fromkeys(stamps))
        for stamp in self._stamps[binary_id]:
            self._claims.setdefault(stamp, _Claims()).values[binary_id] = value
            self._write(stamp)

    def remove(self, binary_id: BinaryId) -> None:
        """Its table is given up. Handlers that found it still may use it until the next flip."""
        for stamp in self._stamps.pop(binary_id, ()):
            del self._claims[stamp].values[binary_id]
            self._write(stamp)

    def _write(self, stamp: FileStamp) -> None:
        values, key = self._claims[stamp].values, _key_bytes(stamp)
        if not values:
            del self._claims[stamp]
        if len(values) != 1:
            bpf.delete(self._map, key)
            return
        try:
            bpf.update(self._map, key, next(iter(values.values())))
        except OSError as error:
            if error.errno != errno.E2BIG:  # Full: its code is walked once each process was met.
                raise KernelError(f"cannot tell the kernel of a file's unwind table: {error.strerror}") from error


def _value(segments: Sequence[Segment], walk: FileWalk) -> bytes | None:
    """Struct unwind_file; None for files it cannot say."""
    code = [segment for segment in segments if segment.flags & _EXECUTABLE]
    if not 1 <= len(code) <= SEGMENTS:
        return None
    packed = [_FILE.pack(walk.first_page, walk.low_page, walk.page_count, walk.kind)]
    for segment in code:
        first = segment.offset // _PAGE_BYTES * _PAGE_BYTES
        size_bytes = segment.offset + segment.file_size_bytes - first
        packed.append(_SEGMENT.pack(first, size_bytes, (segment.offset - segment.vaddr) % (1 << 64)))
    return b"".join(packed).ljust(_FILE.size + SEGMENTS * _SEGMENT.size, b"\0")


def _key_bytes(stamp: FileStamp) -> bytes:
    seconds, nanoseconds = divmod(stamp.changed_ns, 1_000_000_000)
    return _FILE_KEY.pack(stamp.inode, stamp.size_bytes, seconds % (1 << 64), nanoseconds)
