# SPDX-License-Identifier: Apache-2.0
"""Who the files behind mappings are: identified once per content, remembered in a bounded cache, kept open for upload.

A file is looked at (stat) every time and read only when its device, inode, size or times are new. It may change while it is read: then
nothing is kept and it counts as changed. Descriptors are kept for the newest binaries only, so that a flood of programs takes none; the
file of an older one is found again through a process that maps it, as long as one lives.
"""

import os
import threading
from collections import OrderedDict
from pathlib import Path

from agent.process.directory import ProcessDirectory
from agent.process.elf_header import read_identity
from agent.process.open_file import FileKey, key_of, look_at, name_of, open_file
from agent.process.paths import reduce_path
from agent.records.binary import Binary, BinaryId, FileStamp
from agent.records.process import Mapping
from emberwatch.v1 import batch_pb2 as pb


class BinaryCache:
    """Not for several threads at once, except for `open_binary` and `release`."""

    def __init__(self, binaries_max: int, open_max: int, proc_root: Path = Path("/proc")) -> None:
        self._proc_root = proc_root
        self._binaries: OrderedDict[FileKey, Binary] = OrderedDict()
        self._binaries_max = binaries_max
        self._files: dict[BinaryId, tuple[FileKey, ...]] = {}
        self._stamps: dict[BinaryId, tuple[FileStamp, ...]] = {}
        """What files_of answers: it is asked for every mapping of every process."""
        self._mapped: dict[BinaryId, tuple[int, Mapping]] = {}
        """PID and mapping it was seen in last."""
        self._open: OrderedDict[BinaryId, int] = OrderedDict()
        self._open_max = open_max
        self._lock = threading.Lock()
        self.evicted = 0
        """Binaries that left the cache for newer ones."""
        self.unreadable = 0
        """Mappings whose file could not be found, opened, or was no regular file."""
        self.changed = 0
        """Files that changed while they were read."""

    def identify(self, directory: ProcessDirectory, mapping: Mapping) -> Binary | None:
        """The binary behind a mapping with a file; None (and a count) when it cannot be had."""
        found = look_at(directory, mapping)
        if found is None:
            self.unreadable += 1
            return None
        key = key_of(found)
        binary = self._binaries.get(key)
        if binary is not None:
            self._binaries.move_to_end(key)
            self._mapped[binary.id] = directory.pid, mapping
            return binary
        fd = open_file(directory, mapping, key)
        if fd is None:
            self.unreadable += 1
            return None
        binary = self._read(fd, key, reduce_path(name_of(directory, mapping)))
        if binary is None:
            os.close(fd)
            return None
        self._remember(key, binary)
        self._mapped[binary.id] = directory.pid, mapping
        self._keep_open(binary.id, fd)
        return binary

    def open_binary(self, binary_id: BinaryId) -> int | None:
        """A descriptor of its own for the caller, who closes it; None when the file is not to be had any more. Raises OSError when there
        are no descriptors left."""
        with self._lock:
            fd = self._open.get(binary_id)
            if fd is not None:
                return os.dup(fd)
        return self._open_again(binary_id)

    def files_of(self, binary_id: BinaryId) -> tuple[FileStamp, ...]:
        """The files that were found to be this binary, as they were then: each once, on however many devices it is seen."""
        return self._stamps.get(binary_id, ())

    def release(self, binary_id: BinaryId) -> None:
        """The server has answered: the file need not be kept open."""
        with self._lock:
            fd = self._open.pop(binary_id, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        """Close all descriptors."""
        for binary_id in list(self._open):
            self.release(binary_id)

    def _open_again(self, binary_id: BinaryId) -> int | None:
        """Whatever has that PID by now: only a file that was found to be this binary is opened."""
        mapped, keys = self._mapped.get(binary_id), self._files.get(binary_id, ())
        directory = ProcessDirectory.open(self._proc_root, mapped[0]) if mapped is not None else None
        if mapped is None or directory is None:
            return None
        with directory:
            found = look_at(directory, mapped[1])
            return open_file(directory, mapped[1], key_of(found)) if found is not None and key_of(found) in keys else None

    def _read(self, fd: int, key: FileKey, path: bytes) -> Binary | None:
        def read(offset: int, size: int) -> bytes:
            try:
                return os.pread(fd, size, offset)
            except (OSError, OverflowError):
                return b""

        size_bytes = key[2]
        identity = read_identity(read, size_bytes)
        if key_of(os.fstat(fd)) != key:
            self.changed += 1
            return None
        return Binary(pb.BINARY_KIND_ELF, identity.id, path, identity.segments, size_bytes)

    def _remember(self, key: FileKey, binary: Binary) -> None:
        self._binaries[key] = binary
        self._set_files(binary.id, (*self._files.get(binary.id, ()), key))
        if len(self._binaries) > self._binaries_max:
            self._forget(*self._binaries.popitem(last=False))
            self.evicted += 1

    def _forget(self, key: FileKey, binary: Binary) -> None:
        self._set_files(binary.id, tuple(each for each in self._files[binary.id] if each != key))

    def _set_files(self, binary_id: BinaryId, keys: tuple[FileKey, ...]) -> None:
        if keys:
            self._files[binary_id] = keys
            self._stamps[binary_id] = tuple(dict.fromkeys(FileStamp(inode, size, ctime_ns) for _, inode, size, _, ctime_ns in keys))
        else:
            del self._files[binary_id], self._stamps[binary_id]
            self._mapped.pop(binary_id, None)

    def _keep_open(self, binary_id: BinaryId, fd: int) -> None:
        with self._lock:
            closed = [self._open.pop(binary_id, None)]
            self._open[binary_id] = fd
            if len(self._open) > self._open_max:
                closed.append(self._open.popitem(last=False)[1])
        for old in closed:
            if old is not None:
                os.close(old)
