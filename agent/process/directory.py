# SPDX-License-Identifier: Apache-2.0
"""An open /proc/PID: everything read through it belongs to one process, even when its PID is given to another meanwhile.

A process that is gone answers with None, as does a file the agent may not read; nothing here raises.
"""

import os
from pathlib import Path
from types import TracebackType

from agent.process.start import ProcessStat, parse_stat

_MAX_STAT_BYTES = 4096
_MAX_STATUS_BYTES = 64 << 10
_MAX_THREADS_TRIED = 64


class ProcessDirectory:
    """Use as a context manager; `fd` is an O_PATH descriptor."""

    def __init__(self, fd: int, pid: int) -> None:
        self.fd = fd
        self.pid = pid

    @classmethod
    def open(cls, proc_root: Path, pid: int) -> "ProcessDirectory | None":
        """None when there is no such process."""
        try:
            return cls(os.open(f"{proc_root}/{pid}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), pid)
        except OSError:
            return None

    def __enter__(self) -> "ProcessDirectory":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self.fd)

    def read(self, name: bytes, limit_bytes: int) -> bytes | None:
        """At most `limit_bytes` of a file of the directory."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return None
        pieces: list[bytes] = []
        try:
            while limit_bytes > 0 and (piece := os.read(fd, min(limit_bytes, 1 << 16))):
                pieces.append(piece)
                limit_bytes -= len(piece)
        except OSError:
            return None
        finally:
            os.close(fd)
        return b"".join(pieces)

    def follow(self, name: bytes) -> os.stat_result | None:
        """Stat of what a link of the directory stands for; opens nothing."""
        try:
            return os.stat(name, dir_fd=self.fd)
        except OSError:
            return None

    def link(self, name: bytes) -> bytes:
        """Text of a link, b"" when unknown."""
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError:
            return b""

    def stat(self) -> ProcessStat | None:
        """The parsed stat file."""
        raw = self.read(b"stat", _MAX_STAT_BYTES)
        return parse_stat(raw) if raw else None

    def namespace_pid(self) -> int:
        """The process's PID in its own, innermost PID namespace; its PID here when unknown."""
        return self._status_number(b"NStgid:") or self.pid

    def live_thread(self, proc_root: Path) -> "ProcessDirectory | None":
        """The directory of a thread that still runs, for a process whose main thread has left.

        It is opened as /proc/TID, which the kernel does not list but finds, because /proc/PID/task/TID has no map_files.
        """
        try:
            tasks = os.open(b"task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return None
        try:
            with os.scandir(tasks) as entries:
                tids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        except OSError:
            return None
        finally:
            os.close(tasks)
        for tid in [tid for tid in tids if tid != self.pid][:_MAX_THREADS_TRIED]:
            thread = ProcessDirectory.open(proc_root, tid)
            if thread is None:
                continue
            stat = thread.stat()
            if stat is not None and not stat.is_dead and thread._status_number(b"Tgid:", 0) == self.pid:
                return thread
            os.close(thread.fd)
        return None

    def _status_number(self, field: bytes, default: int = 0) -> int:
        for line in (self.read(b"status", _MAX_STATUS_BYTES) or b"").split(b"\n"):
            numbers = line.split()
            if line.startswith(field) and len(numbers) > 1 and numbers[-1].isdigit():
                return int(numbers[-1])
        return default

    def effective_uid(self) -> int | None:
        """Effective user id, as the agent's user namespace numbers it."""
        for line in (self.read(b"status", _MAX_STATUS_BYTES) or b"").split(b"\n"):
            numbers = line.split()
            if line.startswith(b"Uid:") and len(numbers) == 5 and numbers[2].isdigit():
                return int(numbers[2])
        return None
