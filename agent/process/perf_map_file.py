# SPDX-License-Identifier: Apache-2.0
"""Finds and reads the perf map of a process: /tmp/perf-PID.map in its own root, with its PID in its own namespace.

Anyone may write to /tmp: a map counts only when it is a regular file that belongs to the user the process runs as, and not by way of a
symbolic link. What lies there from an earlier process of the same PID, or from the program before an exec, names nothing until it
changes. A map is read again only when size or time changed, and never for more CPU than the settings allow.
"""

import itertools
import os
import stat
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agent.process.directory import ProcessDirectory
from agent.process.openat2 import find_in_root, open_regular
from agent.process.perf_map import parse_perf_map, size_bytes
from agent.process.rate import RateLimit
from agent.process.settings import ProcessSettings
from agent.records.process import MappedBinary, MappingKind, PerfMap

_READ_BYTES = 1 << 20
_COST_S_PER_BYTE = 12e-9
"""Measured at 9e-9 for a map of a million lines without overlaps."""

_OLDER_NS = 2_000_000_000
"""A map must be older than the process by more than this: file times lag by a tick, and the clock may have been set a little."""

FileKey = tuple[int, int, int, int]
"""Device, inode, size, mtime."""


@dataclass(frozen=True, slots=True)
class PerfMapState:
    """What was last read of the map of one process."""

    key: FileKey
    perf_map: PerfMap | None
    """None when the file was refused or empty."""
    not_before_s: float
    """When it may be read again."""
    size_bytes: int = 0
    number: int = 0
    """Of what is held; 0 for nothing."""


@dataclass(frozen=True, slots=True)
class _Held:
    user: int
    size_bytes: int


class PerfMapFiles:
    """Reads perf maps within a budget of CPU and memory. Counts only grow."""

    def __init__(
        self, settings: ProcessSettings, proc_root: Path, now_s: Callable[[], float], boot_unix_ns: Callable[[], int] | None = None
    ) -> None:
        """`boot_unix_ns` tells when CLOCK_BOOTTIME was 0, as file times count."""
        self._boot_unix_ns = boot_unix_ns or _boot_unix_ns
        self._settings = settings
        self._proc_root = proc_root
        self._now_s = now_s
        self._cpu_s = RateLimit(settings.perf_map_cpu_share_total, settings.perf_map_cpu_burst_s, now_s)
        self._held: dict[int, _Held] = {}
        self._numbers = itertools.count(1)
        self._given_up: set[int] = set()
        self.refused = 0
        """Wrong owner, no regular file, or no memory left for it."""
        self.truncated = 0
        """Maps over the limit of bytes or lines, read up to it."""
        self.put_off = 0
        """Changed maps that were not read again yet, for their cost."""
        self.malformed = 0

    def state_at_first_sight(self, pid: int, namespace_pid: int, start_boot_ns: int, *, is_after_exec: bool) -> PerfMapState | None:
        """A state that keeps a map of somebody else from being read; None when there is none."""
        found = self._look(pid, namespace_pid)
        if found is None:
            return None
        is_older = found.st_mtime_ns + _OLDER_NS < self._boot_unix_ns() + start_boot_ns
        return PerfMapState(_key_of(found), None, self._now_s()) if is_older or is_after_exec else None

    def is_changed(self, pid: int, namespace_pid: int, state: PerfMapState | None) -> bool:
        """Whether there is something to read, by one look at the file. A map whose file is gone is kept: its code may still run."""
        found = self._look(pid, namespace_pid)
        if found is None:
            return False
        if state is not None and _key_of(found) == state.key:
            return False
        if (state is not None and self._now_s() < state.not_before_s) or not self._cpu_s.take(self._cost_s(found.st_size)):
            self.put_off += 1
            return False
        return True

    def read(self, directory: ProcessDirectory, namespace_pid: int, state: PerfMapState | None) -> PerfMapState | None:
        """Read the map after is_changed said so; `state` again when the file is gone by now."""
        fd = self._open(directory, namespace_pid)
        if fd is None:
            return state
        try:
            found = os.fstat(fd)
            self.forget(state)
            if found.st_uid != directory.effective_uid():
                self.refused += 1
                return PerfMapState(_key_of(found), None, self._now_s())
            return self._held_state(self._parsed(fd, found), found.st_uid)
        finally:
            os.close(fd)

    def forget(self, state: PerfMapState | None) -> None:
        """The process is gone; its map takes no memory any more."""
        if state is not None:
            self._held.pop(state.number, None)
            self._given_up.discard(state.number)

    def take_given_up(self) -> frozenset[int]:
        """Numbers of states whose map has to go since the last call, for others to have room."""
        given_up, self._given_up = frozenset(self._given_up), set()
        return given_up

    def without_map(self, state: PerfMapState) -> PerfMapState:
        """The state of a map that was given up: it names nothing until it changes."""
        return replace(state, perf_map=None, size_bytes=0, number=0)

    def _held_state(self, state: PerfMapState, user: int) -> PerfMapState:
        """Hold a map. Where there is no room the user who holds the most gives up the largest, which may be this one."""
        if not state.size_bytes:
            return state
        state = replace(state, number=next(self._numbers))
        self._held[state.number] = _Held(user, state.size_bytes)
        while sum(held.size_bytes for held in self._held.values()) > self._settings.perf_map_total_bytes:
            of_user: Counter[int] = Counter()
            for held in self._held.values():
                of_user[held.user] += held.size_bytes
            most = max(of_user, key=lambda user: of_user[user])
            largest = max((n for n, held in self._held.items() if held.user == most), key=lambda number: self._held[number].size_bytes)
            del self._held[largest]
            self.refused += 1
            if largest == state.number:
                state = self.without_map(state)
            else:
                self._given_up.add(largest)
        return state

    def _look(self, pid: int, namespace_pid: int) -> os.stat_result | None:
        """What lies there, as the process itself sees it: links of its root lead into its root."""
        try:
            root_fd = os.open(f"{self._proc_root}/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        path_fd = find_in_root(root_fd, _path(namespace_pid))
        os.close(root_fd)
        if path_fd is None:
            return None
        found = os.fstat(path_fd)
        os.close(path_fd)
        return found

    def _open(self, directory: ProcessDirectory, namespace_pid: int) -> int | None:
        try:
            root_fd = os.open(b"root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
        except OSError:
            return None
        path_fd = find_in_root(root_fd, _path(namespace_pid))
        os.close(root_fd)
        if path_fd is None:
            return None
        is_regular = stat.S_ISREG(os.fstat(path_fd).st_mode)
        fd = open_regular(path_fd)
        os.close(path_fd)
        self.refused += not is_regular
        return fd

    def _parsed(self, fd: int, found: os.stat_result) -> PerfMapState:
        started_s = time.thread_time()
        raw = _read(fd, self._settings.perf_map_file_bytes)
        parse = parse_perf_map(raw, self._settings.perf_map_lines)
        self.truncated += parse.is_truncated or found.st_size > self._settings.perf_map_file_bytes
        self.malformed += parse.malformed
        cost_s = time.thread_time() - started_s
        self._cpu_s.charge(max(cost_s - self._cost_s(found.st_size), 0))
        perf_map = parse.perf_map if len(parse.perf_map.starts) else None
        held_bytes = size_bytes(perf_map) if perf_map is not None else 0
        return PerfMapState(_key_of(found), perf_map, self._now_s() + cost_s / self._settings.perf_map_cpu_share, held_bytes)

    def _cost_s(self, file_bytes: int) -> float:
        return min(file_bytes, self._settings.perf_map_file_bytes) * _COST_S_PER_BYTE


def with_jit(mappings: tuple[MappedBinary, ...], perf_map: PerfMap | None) -> tuple[MappedBinary, ...]:
    """Mappings without a file that hold a range of the perf map become JIT."""
    if perf_map is None:
        return mappings
    return tuple(
        replace(m, kind=MappingKind.JIT) if m.kind is MappingKind.ANONYMOUS and _holds_a_range(m, perf_map) else m for m in mappings
    )


def _holds_a_range(mapped: MappedBinary, perf_map: PerfMap) -> bool:
    first_behind = int(np.searchsorted(perf_map.ends, np.uint64(mapped.mapping.start), side="right"))
    return first_behind < len(perf_map.starts) and int(perf_map.starts[first_behind]) < mapped.mapping.end


def _read(fd: int, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    at = 0
    try:
        while at < limit_bytes and (piece := os.pread(fd, min(_READ_BYTES, limit_bytes - at), at)):
            pieces.append(piece)
            at += len(piece)
    except OSError:
        # What was read up to here is whole lines and a cut one, which is not used.
        return b"".join(pieces)
    return b"".join(pieces)


def _path(namespace_pid: int) -> bytes:
    return b"/tmp/perf-%d.map" % namespace_pid


def _key_of(found: os.stat_result) -> FileKey:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _boot_unix_ns() -> int:
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
