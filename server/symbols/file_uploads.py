# SPDX-License-Identifier: Apache-2.0
"""Takes files from people and pipelines piece by piece, onto disk as they come, and hands finished ones on.

An upload has a token that its sender chose; after a break the sender asks how far it came and goes on from there. Pieces are appended
only where the last one ended. The file has no name while it grows: a crash leaves nothing behind, half a file is never seen.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from server.errors import BadRequest, LimitExceeded, Overloaded
from server.symbols.disk_room import refusal_for_room
from server.symbols.settings import SymbolSettings

MAX_SESSIONS = 32
IDLE_S = 600.0
READ_BYTES = 256 << 10


class Readable(Protocol):
    """What a piece is read from."""

    def read(self, size: int = ..., /) -> bytes:
        """At most so many bytes; b"" at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a piece belongs."""

    token: str
    """Chosen by the sender; never part of a path."""
    offset: int
    size_bytes: int
    """Of the whole file."""


@dataclass(slots=True)
class _Session:
    descriptor: int
    size_bytes: int
    last_use_s: float
    received: int = 0
    is_closed: bool = False
    """Its descriptor may be another file's by now."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class FileUploads:
    """Unfinished uploads. Safe for several threads; pieces of one upload wait for each other."""

    def __init__(self, settings: SymbolSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """`settings.directory` must be there."""
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}

    def received(self, token: str) -> int:
        """How many bytes of an upload are here; 0 for one that is not known."""
        with self._lock:
            session = self._sessions.get(token)
            return 0 if session is None else session.received

    def append(self, piece: Piece, data: Readable) -> tuple[int, int | None]:
        """Take a piece; gives how many bytes are here, and the descriptor of the whole file, the caller's to close, when they are all.

        Raises LimitExceeded for a file that is too large, BadRequest for one that changes, Overloaded when there is no room now.
        """
        session = self._session(piece)
        with session.lock:
            if session.is_closed:
                raise Overloaded("the upload was given up in between: begin again")
            if session.size_bytes != piece.size_bytes:
                raise BadRequest(f"an upload of {session.size_bytes} bytes goes on as one of {piece.size_bytes}")
            if piece.offset == session.received:
                self._write(session, data)
            session.last_use_s = self._clock()
            if session.received < session.size_bytes:
                return session.received, None
        with self._lock:
            if self._sessions.pop(piece.token, None) is not session:
                raise BadRequest("the upload was finished by another request")
        return session.received, session.descriptor

    def close(self) -> None:
        """Drop what is unfinished."""
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            with session.lock:
                _close(session)

    def _session(self, piece: Piece) -> _Session:
        if piece.size_bytes > self._settings.upload_max_bytes:
            raise LimitExceeded(f"a file of {piece.size_bytes} bytes; at most {self._settings.upload_max_bytes} are taken (upload_bytes)")
        if piece.size_bytes <= 0:
            raise BadRequest("the file is empty")
        with self._lock:
            session = self._sessions.get(piece.token)
            if session is None:
                self._drop_idle()
                self._check_room(piece.size_bytes)
                session = self._sessions[piece.token] = _Session(self._new_file(), piece.size_bytes, self._clock())
            session.last_use_s = self._clock()  # from here on it is not idle, though its lock is not held yet
            return session

    def _write(self, session: _Session, data: Readable) -> None:
        while session.received < session.size_bytes and (read := data.read(min(READ_BYTES, session.size_bytes - session.received))):
            try:
                session.received += os.pwrite(session.descriptor, read, session.received)
            except OSError as error:
                raise Overloaded(f"the upload cannot be written: {error.strerror}") from error

    def _check_room(self, size_bytes: int) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            raise Overloaded(f"{MAX_SESSIONS} uploads are running already")
        outstanding = sum(session.size_bytes - session.received for session in self._sessions.values())
        if outstanding + size_bytes > self._settings.upload_quota_bytes:
            raise Overloaded(f"unfinished uploads would take more than {self._settings.upload_quota_bytes} bytes")
        refusal = refusal_for_room(self._settings.directory, outstanding + size_bytes, self._settings.free_min_bytes)
        if refusal:
            raise Overloaded(f"no upload while {refusal}")

    def _new_file(self) -> int:
        try:
            descriptor, name = tempfile.mkstemp(dir=self._settings.directory, suffix=".upload")
        except OSError as error:
            raise Overloaded(f"no file for an upload: {error.strerror}") from error
        os.unlink(name)  # noqa: PTH108
        return descriptor

    def _drop_idle(self) -> None:
        now_s = self._clock()
        for token, session in list(self._sessions.items()):
            if now_s - session.last_use_s > IDLE_S and session.lock.acquire(blocking=False):
                try:
                    del self._sessions[token]
                    _close(session)
                finally:
                    session.lock.release()


def _close(session: _Session) -> None:
    """Under the session's lock."""
    session.is_closed = True
    os.close(session.descriptor)
