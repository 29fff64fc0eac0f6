# SPDX-License-Identifier: Apache-2.0
"""The order in which tables are made: what is being looked at first, by its weight; then small files before huge ones.

One worker at least is never busy with a huge file, so that a debug file of a gigabyte does not hold up the names of everything else.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from server.symbols.identity import BinaryKey

HUGE_BYTES = 32 << 20
"""Takes more than some seconds to read."""
NOT_LOOKED_AT = -1.0


@dataclass(slots=True)
class _Job:
    key: BinaryKey
    is_huge: bool
    number: int
    """Of its coming: of equals the first is made first."""
    work: Callable[[], None]
    is_remake: bool = False
    weight: float = NOT_LOOKED_AT

    def rank(self) -> tuple[float, bool, int]:
        return (-self.weight, self.is_huge, self.number)


class WorkQueue:
    """Does work on binaries in the background. Any thread."""

    def __init__(self, workers: int, name: str) -> None:
        """With a single worker a huge file does hold up the others."""
        self._executor = ThreadPoolExecutor(workers, name)
        self._most_huge = max(1, workers - 1)
        self._changed = threading.Condition()
        self._waiting: list[_Job] = []
        self._running: list[_Job] = []
        self._count = 0
        self._is_closed = False

    def __len__(self) -> int:
        """Jobs that wait or run."""
        with self._changed:
            return len(self._waiting) + len(self._running)

    def add(self, key: BinaryKey, size_bytes: int, work: Callable[[], None], *, is_remake: bool = False) -> None:
        """Do `work` on a binary whose files have so many bytes; nothing is done any more after close().

        `is_remake` says that the work reads all there is when it runs: one that waits does for all that are added meanwhile.
        """
        with self._changed:
            if self._is_closed or (is_remake and any(job.is_remake and job.key == key for job in self._waiting)):
                return
            self._count += 1
            self._waiting.append(_Job(key, size_bytes > HUGE_BYTES, self._count, work, is_remake))
            self._executor.submit(self._do_one)

    def look_at(self, weights: Mapping[BinaryKey, float]) -> set[BinaryKey]:
        """Somebody looks at these binaries: the heaviest are next. Gives those of them that wait or run."""
        with self._changed:
            for job in self._waiting:
                if job.key in weights:
                    job.weight = max(0.0, weights[job.key])
            return {job.key for job in (*self._waiting, *self._running) if job.key in weights}

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing waits or runs; False when that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._running, timeout_s)

    def close(self) -> None:
        """Forget what waits, and return when what runs has ended."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _do_one(self) -> None:
        job = self._take()
        if job is None:
            return
        try:
            job.work()
        finally:
            with self._changed:
                self._running.remove(job)
                if job.is_huge and self._waiting and not self._is_closed:  # For a worker that was turned away meanwhile.
                    self._executor.submit(self._do_one)
                self._changed.notify_all()

    def _take(self) -> _Job | None:
        """The next job; None when only huge ones wait and enough of them run: then the end of one of them calls again."""
        with self._changed:
            is_full = sum(job.is_huge for job in self._running) >= self._most_huge
            job = min((job for job in self._waiting if not (is_full and job.is_huge)), key=_Job.rank, default=None)
            if job is not None:
                self._waiting.remove(job)
                self._running.append(job)
            return job
