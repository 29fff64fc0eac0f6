# SPDX-License-Identifier: Apache-2.0
"""The queue of windows on disk: one file a parcel, written whole or not at all, bounded by bytes and age.

Opening always succeeds, whatever the directory holds. A file that is not ours is left alone; a record that does not pass its
checksums moves to quarantine/ and its samples are counted. When the disk refuses, parcels wait in memory, up to a cap.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.records.window import SHIPPED_KINDS, Parcel
from agent.ship.record import HEADER_BYTES, RecordError, RecordId, bytes_from_parcel, id_from_file_name, id_of_parcel, parcel_from_bytes
from emberwatch.v1 import marks_pb2 as marks
from emberwatch.v1.marks_pb2 import LossReason

log = logging.getLogger(__name__)

_QUARANTINE = "quarantine"
_TEMPORARY = ".writing"
_LEAST_LEFT_S = 3600
"""What a record of an earlier run is kept for at least: how old it is only the wall clock tells, which may have been set since."""


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """How much is kept; beyond it the oldest leaves."""

    disk_bytes: int = 512 << 20
    age_s: int = 24 * 3600
    memory_bytes: int = 4 << 20
    """For parcels that the disk refused."""
    quarantine_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class SpoolState:
    """What the spool holds and what became of the rest, since it was opened."""

    records: int
    disk_bytes: int
    memory_bytes: int
    is_memory_only: bool
    """The last append could not be written to the disk."""
    evicted_records: int
    corrupt_records: int
    rejected_records: int


class Spool:
    """All methods may be called from any thread."""

    def __init__(
        self,
        directory: Path,
        now_unix_s: Callable[[], float],
        limits: SpoolLimits | None = None,
        boot_s: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        """`boot_s` is a clock that nobody sets, by which records age; `now_unix_s` is asked once, about what an earlier run left."""
        self._directory = directory
        self._now_unix_s = now_unix_s
        self._boot_s = boot_s
        self._too_old_s: dict[RecordId, float] = {}
        """When each record is too old, on that clock."""
        self._limits = limits or SpoolLimits()
        self._lock = threading.RLock()
        self._sizes: dict[RecordId, int] = {}
        self._memory: dict[RecordId, Parcel] = {}
        self._in_flight: RecordId | None = None
        self._losses: dict[str, dict[LossReason, int]] = {}
        self._is_memory_only = False
        self._evicted = self._corrupt = self._rejected = 0
        self._scan()

    def append(self, parcel: Parcel) -> None:
        """Keep a parcel. When this returns it is on the disk, or in memory when the disk refuses."""
        record = id_of_parcel(parcel)
        with self._lock:
            self._too_old_s[record] = self._boot_s() + self._limits.age_s
            try:
                self._write(record, bytes_from_parcel(parcel))
                self._log_disk(is_refused=False, error=None)
            except OSError as error:
                self._log_disk(is_refused=True, error=error)
                self._memory[record] = parcel
            self._evict()

    def newest(self) -> RecordId | None:
        """The record that was appended last."""
        with self._lock:
            return max((*self._sizes, *self._memory), default=None)

    def oldest(self) -> RecordId | None:
        """The record that has waited longest."""
        with self._lock:
            return min((*self._sizes, *self._memory), default=None)

    def read(self, record: RecordId) -> Parcel | None:
        """Read a record in order to send it; it stays until `acknowledge` or `reject`.

        None when it is damaged (then it is counted and laid aside) or gone.
        """
        with self._lock:
            self._in_flight = record
            if record in self._memory:
                return self._memory[record]
            if record not in self._sizes:
                return None
            try:
                parcel = parcel_from_bytes((self._directory / record.file_name).read_bytes())
                if not record.is_of(parcel):
                    raise RecordError("the name belongs to another record")
            except (OSError, RecordError) as error:
                log.warning("spool record damaged file=%s error=%s", record.file_name, error)
                self._corrupt += 1
                self._count(marks.LOSS_REASON_SPOOL_CORRUPT, record)
                self._quarantine(record)
                return None
            return parcel

    def acknowledge(self, record: RecordId) -> None:
        """Forget a record that the server has."""
        with self._lock:
            self._in_flight = None
            self._memory.pop(record, None)
            if self._sizes.pop(record, None) is not None:
                _unlink(self._directory / record.file_name)

    def reject(self, record: RecordId, reason: LossReason) -> None:
        """Lay a record aside that the server refused for good, and count what it held under `reason`."""
        with self._lock:
            self._in_flight = None
            self._rejected += 1
            self._count(reason, record)
            self._memory.pop(record, None)
            if record in self._sizes:
                self._quarantine(record)

    def take_losses(self) -> dict[str, dict[LossReason, int]]:
        """Answer what was lost since the last call, by kind, so that the next window can carry it."""
        with self._lock:
            losses, self._losses = self._losses, {}
            return losses

    def state(self) -> SpoolState:
        """For health and logs."""
        with self._lock:
            return SpoolState(
                records=len(self._sizes) + len(self._memory),
                disk_bytes=sum(self._sizes.values()),
                memory_bytes=self._memory_bytes(),
                is_memory_only=self._is_memory_only,
                evicted_records=self._evicted,
                corrupt_records=self._corrupt,
                rejected_records=self._rejected,
            )

    def _scan(self) -> None:
        """Take up what an earlier run left; half-written files of it are removed."""
        try:
            (self._directory / _QUARANTINE).mkdir(parents=True, exist_ok=True)
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    record = id_from_file_name(entry.name)
                    if record is not None and entry.is_file(follow_symlinks=False):
                        self._sizes[record] = entry.stat(follow_symlinks=False).st_size
                        left_s = self._limits.age_s - (self._now_unix_s() - record.end_unix_s)
                        self._too_old_s[record] = self._boot_s() + min(max(left_s, _LEAST_LEFT_S), self._limits.age_s)
                    elif entry.name.endswith(_TEMPORARY):
                        _unlink(self._directory / entry.name)
        except OSError as error:
            self._log_disk(is_refused=True, error=error)
        self._evict()

    def _write(self, record: RecordId, data: bytes) -> None:
        path = self._directory / record.file_name
        temporary = path.with_suffix(_TEMPORARY)
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "wb", closefd=False) as file:
                    file.write(data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.rename(path)
            _sync_directory(self._directory)
        except OSError:
            _unlink(temporary)
            _unlink(path)
            raise
        self._sizes[record] = len(data)

    def _evict(self) -> None:
        """Drop the oldest until all bounds hold; what is being sent right now stays."""
        now_s = self._boot_s()
        self._too_old_s = {record: at_s for record, at_s in self._too_old_s.items() if record in self._sizes or record in self._memory}
        too_old = {record for record, at_s in self._too_old_s.items() if now_s > at_s}
        disk_bytes = sum(self._sizes.values())
        if disk_bytes > self._limits.disk_bytes or too_old:
            for record in sorted(self._sizes):
                if record != self._in_flight and (disk_bytes > self._limits.disk_bytes or record in too_old):
                    disk_bytes -= self._sizes.pop(record)
                    _unlink(self._directory / record.file_name)
                    self._count_evicted(record)
        for record in sorted(self._memory):
            if record != self._in_flight and (self._memory_bytes() > self._limits.memory_bytes or record in too_old):
                del self._memory[record]
                self._count_evicted(record)

    def _memory_bytes(self) -> int:
        return sum(len(parcel.payload) + HEADER_BYTES for parcel in self._memory.values())

    def _count_evicted(self, record: RecordId) -> None:
        self._evicted += 1
        self._count(marks.LOSS_REASON_SPOOL_EVICTED, record)

    def _count(self, reason: LossReason, record: RecordId) -> None:
        for kind, count in zip(SHIPPED_KINDS, record.counts, strict=False):
            if count:
                losses = self._losses.setdefault(kind, {})
                losses[reason] = losses.get(reason, 0) + count

    def _quarantine(self, record: RecordId) -> None:
        """Move a file aside; the oldest of those leave when there are too many bytes of them."""
        self._sizes.pop(record, None)
        aside = self._directory / _QUARANTINE
        try:
            (self._directory / record.file_name).rename(aside / record.file_name)
            kept = sorted(path for path in aside.iterdir() if path.is_file())
            size_bytes = sum(path.stat().st_size for path in kept)
            while kept and size_bytes > self._limits.quarantine_bytes:
                size_bytes -= kept[0].stat().st_size
                kept.pop(0).unlink()
        except OSError as error:
            # The record is counted already; a file that cannot be moved is removed, or it would be found again at the next start.
            log.warning("spool quarantine failed file=%s error=%s", record.file_name, error)
            _unlink(self._directory / record.file_name)

    def _log_disk(self, *, is_refused: bool, error: OSError | None) -> None:
        """One line for each change of state."""
        if is_refused != self._is_memory_only:
            self._is_memory_only = is_refused
            if is_refused:
                log.warning("spool keeps windows in memory only directory=%s error=%s", self._directory, error)
            else:
                log.info("spool writes to disk again directory=%s", self._directory)


def _unlink(path: Path) -> None:
    """Remove a file if that is possible. If not, the record comes back at the next start and is sent twice; the server stores it once."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("spool cannot remove a file path=%s error=%s", path, error)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
