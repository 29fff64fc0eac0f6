# SPDX-License-Identifier: Apache-2.0
"""Asks debuginfod servers for debug files, one request at a time, in a thread of its own: no question ever waits for it.

A build id stands in the queue once. The servers of the chain are asked in the order of the settings until one has a file whose build
id is the right one. Each server is asked at most once an hour for a build id, whatever it said (fetch_log.py), and is left alone while
it fails (breaker.py); what such a server could not be asked for stays in the queue.
"""

import logging
import os
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from server.symbols.breaker import Breaker
from server.symbols.debug_links import probe_or_none
from server.symbols.debuginfod import Answer, Fetched, FetchLimits, Request, Upstream
from server.symbols.disk_room import refusal_for_room
from server.symbols.fetch_log import FetchLog

log = logging.getLogger(__name__)

MAX_QUEUED = 20_000
LOOK_AGAIN_S = 30.0
"""How often waiting build ids are looked at while every server that is left for them rests."""
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """Who is asked, and within which bounds."""

    directory: Path
    """For the log and for files on their way."""
    upstreams: Sequence[Upstream]
    limits: FetchLimits = field(default_factory=FetchLimits)
    free_min_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What one server said of one build id; the descriptor, with FOUND only, is the receiver's to close."""

    build_id: bytes
    url: str
    fetched: Fetched
    descriptor: int | None = None


class Fetcher:
    """The queue and its thread. All methods may be called from any thread; none of them waits for the network."""

    def __init__(
        self,
        order: FetchOrder,
        receive: Callable[[Told], None],
        clock: Callable[[], float] = time.monotonic,
        unix_clock: Callable[[], float] = time.time,
    ) -> None:
        """`receive` is called in the thread with everything a server said."""
        self._order = order
        self._receive = receive
        self._log = FetchLog(order.directory / "fetches.log", unix_clock)
        self._breakers = {upstream.url: Breaker(clock) for upstream in order.upstreams}
        self._wake = threading.Condition()
        self._queue: OrderedDict[bytes, None] = OrderedDict()
        self._is_closing = False
        self._running: Request | None = None
        self._is_asking = False
        self._thread = threading.Thread(target=self._run, name="debuginfod", daemon=True)
        self._thread.start()

    def want(self, build_id: bytes, is_patient: bool = True) -> bool:
        """Put a build id into the queue when some server may be asked for it. False when all were within the hour, or longer if patient."""
        if not any(self._log.wait_s(build_id, upstream.url, is_patient) == 0.0 for upstream in self._order.upstreams):
            return False
        with self._wake:
            if build_id not in self._queue and len(self._queue) >= MAX_QUEUED:
                return False  # It is wanted again when it is met again.
            self._queue.setdefault(build_id)
            self._wake.notify_all()
        return True

    def is_waiting(self, build_id: bytes) -> bool:
        """Whether it stands in the queue or is being asked for."""
        with self._wake:
            return build_id in self._queue

    def wait_s(self, build_id: bytes) -> float:
        """How long until the first server may be asked again."""
        return min((self._log.wait_s(build_id, upstream.url) for upstream in self._order.upstreams), default=0.0)

    def queued(self) -> int:
        """How many build ids wait."""
        with self._wake:
            return len(self._queue)

    def wait_quiet(self, timeout_s: float) -> bool:
        """Wait until nothing is asked and nothing that waits can be asked now; False when that takes longer."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._is_asking and self._next() is None, timeout_s)

    def close(self) -> None:
        """End what runs; nothing that waits is asked any more."""
        with self._wake:
            self._is_closing = True
            running = self._running
            self._wake.notify_all()
        if running is not None:
            running.abort()
        self._thread.join(_GRACE_S)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._is_closing and (found := self._next()) is None:
                    self._wake.wait(LOOK_AGAIN_S if self._queue else None)
                if self._is_closing:
                    return
                assert found is not None
                build_id, upstream = found
                self._is_asking = True
            try:
                is_found = self._ask(build_id, upstream)
            finally:
                with self._wake:
                    self._is_asking = False
            with self._wake:
                if is_found or self._is_exhausted(build_id):
                    self._queue.pop(build_id, None)
                self._wake.notify_all()

    def _next(self) -> tuple[bytes, Upstream] | None:
        """The first build id with a server that may be asked; those that nobody may be asked for leave the queue. Under the lock."""
        for build_id in list(self._queue):
            if self._is_exhausted(build_id):
                del self._queue[build_id]
                continue
            for upstream in self._order.upstreams:
                if self._log.wait_s(build_id, upstream.url) == 0.0 and self._breakers[upstream.url].wait_s() == 0.0:
                    return build_id, upstream
        return None

    def _is_exhausted(self, build_id: bytes) -> bool:
        return all(self._log.wait_s(build_id, upstream.url) > 0.0 for upstream in self._order.upstreams)

    def _ask(self, build_id: bytes, upstream: Upstream) -> bool:
        """Ask one server. True when it had the file."""
        try:
            file, name = tempfile.mkstemp(dir=self._order.directory, suffix=".fetch")
            os.unlink(name)  # noqa: PTH108 -- nothing is left behind by a crash
        except OSError as error:
            self._log.note(build_id, upstream.url)
            self._receive(Told(build_id, upstream.url, Fetched(Answer.LIMIT, f"no file for it: {error.strerror}")))
            return False
        request = Request(upstream, build_id, self._order.limits)
        with self._wake:
            if self._is_closing:
                os.close(file)
                return False
            self._running = request
        self._log.note(build_id, upstream.url)
        fetched = request.run(file, lambda size: refusal_for_room(self._order.directory, size, self._order.free_min_bytes))
        with self._wake:
            self._running = None
            if self._is_closing:
                os.close(file)
                return False
        if fetched.answer == Answer.FOUND:
            fetched = self._checked(build_id, file, fetched)
        self._count(upstream, fetched)
        is_found = fetched.answer == Answer.FOUND
        if not is_found:
            os.close(file)
        self._receive(Told(build_id, upstream.url, fetched, file if is_found else None))
        return is_found

    def _checked(self, build_id: bytes, file: int, fetched: Fetched) -> Fetched:
        seen = probe_or_none(file)
        if seen is None:
            return Fetched(Answer.UNUSABLE, "answers with a broken ELF file")
        if seen.build_ids.gnu != build_id:
            return Fetched(Answer.UNUSABLE, f"answers with the file of build id {seen.build_ids.gnu.hex() or 'none'}")
        return fetched

    def _count(self, upstream: Upstream, fetched: Fetched) -> None:
        breaker, is_sound = self._breakers[upstream.url], fetched.answer in (Answer.FOUND, Answer.MISSING)
        if is_sound:
            breaker.succeeded()
        elif fetched.answer != Answer.LIMIT:
            breaker.failed()
        level = logging.INFO if is_sound else logging.WARNING
        log.log(
            level, "debuginfod asked url=%s answer=%s bytes=%d reason=%s", upstream.url, fetched.answer, fetched.size_bytes, fetched.reason
        )
        if breaker.wait_s():
            log.warning("debuginfod server is left alone url=%s seconds=%.0f failures=%d", upstream.url, breaker.wait_s(), breaker.failures)
