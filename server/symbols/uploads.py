# SPDX-License-Identifier: Apache-2.0
"""Takes uploads piece by piece and hands finished ones on (messages: symbols.proto).

A piece is appended only where the last one ended; anything else is answered with the place to go on from, so that pieces may come
twice, after a break, or from two agents that hold the same file. The file of an unfinished upload has no name at all
(O_TMPFILE, else unlinked at once): a crash leaves nothing behind, and half a file is never seen by anyone.
"""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from emberwatch.v1 import symbols_pb2 as pb
from server.errors import BadRequest, Overloaded
from server.symbols.disk_room import refusal_for_room
from server.symbols.identity import BinaryKey, key_from_proto
from server.symbols.settings import SymbolSettings

MAX_PIECE_BYTES = 1 << 20
HASH_BYTES = 16
MAX_SESSIONS = 64
IDLE_S = 600.0
"""An upload that nobody went on with for so long makes room."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A finished upload whose hash is right. The descriptor is the receiver's to close."""

    key: BinaryKey
    format: int
    descriptor: int


@dataclass(slots=True)
class _Session:
    descriptor: int
    size_bytes: int
    format: int
    last_use_s: float
    received: int = 0
    digest: "hashlib.blake2b" = field(default_factory=lambda: hashlib.blake2b(digest_size=HASH_BYTES))


class SymbolUploads:
    """Unfinished uploads. Safe for several threads, one piece at a time."""

    def __init__(
        self,
        settings: SymbolSettings,
        refusal: Callable[[BinaryKey], str],
        deliver: Callable[[Delivered], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`refusal` says why a binary is not wanted ("" when it is); `deliver` takes what is finished and must not block."""
        self._settings = settings
        self._refusal = refusal
        self._deliver = deliver
        self._clock = clock
        self._directory = settings.directory / "uploads"
        self._directory.mkdir(parents=True, exist_ok=True)
        for leftover in self._directory.iterdir():
            leftover.unlink()
        self._lock = threading.Lock()
        self._sessions: dict[tuple[BinaryKey, bytes], _Session] = {}

    def receive(self, request: pb.UploadRequest) -> pb.UploadResponse:
        """Take one piece. Raises BadRequest for what makes no sense, Overloaded when there is no room now."""
        key = key_from_proto(request.kind, request.id)
        _check(request)
        if request.size_bytes > self._settings.upload_max_bytes:
            return _not_wanted(f"{request.size_bytes} bytes, at most {self._settings.upload_max_bytes} are taken")
        with self._lock:
            reason = self._refusal(key)
            if reason:
                self._forget(key)
                return _not_wanted(reason)
            session = self._session(key, request)
            if request.offset == session.received and request.data:
                self._append(session, request.data)
            if session.received < session.size_bytes:
                return pb.UploadResponse(status=pb.UPLOAD_STATUS_CONTINUE, next_offset=session.received)
            del self._sessions[key, request.upload_hash]
            if session.digest.digest() != request.upload_hash:
                os.close(session.descriptor)
                raise BadRequest("the bytes of the upload do not give its hash: the file changed while it was sent")
            self._deliver(Delivered(key, session.format, session.descriptor))
            self._forget(key)
            return pb.UploadResponse(status=pb.UPLOAD_STATUS_DONE, next_offset=session.received)

    def close(self) -> None:
        """Drop what is unfinished."""
        with self._lock:
            for place in list(self._sessions):
                os.close(self._sessions.pop(place).descriptor)

    def _session(self, key: BinaryKey, request: pb.UploadRequest) -> _Session:
        now_s = self._clock()
        session = self._sessions.get((key, request.upload_hash))
        if session is None:
            self._drop_idle(now_s)
            self._check_room(request.size_bytes)
            session = _Session(self._new_file(), request.size_bytes, request.format, now_s)
            self._sessions[key, request.upload_hash] = session
        if session.size_bytes != request.size_bytes or session.format != request.format:
            raise BadRequest(f"upload of {session.size_bytes} bytes goes on as one of {request.size_bytes}")
        session.last_use_s = now_s
        return session

    def _append(self, session: _Session, data: bytes) -> None:
        try:
            written = os.pwrite(session.descriptor, data, session.received)
        except OSError as error:
            raise Overloaded(f"upload cannot be written: {error.strerror}") from error
        session.digest.update(data[:written])
        session.received += written

    def _check_room(self, size_bytes: int) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            raise Overloaded(f"{MAX_SESSIONS} uploads are running already")
        promised = sum(session.size_bytes for session in self._sessions.values())
        if promised + size_bytes > self._settings.upload_quota_bytes:
            raise Overloaded(f"unfinished uploads would take {promised + size_bytes} bytes, at most {self._settings.upload_quota_bytes}")
        outstanding = sum(session.size_bytes - session.received for session in self._sessions.values())
        refusal = refusal_for_room(self._directory, outstanding + size_bytes, self._settings.free_min_bytes)
        if refusal:
            raise Overloaded(f"no upload while {refusal}")

    def _new_file(self) -> int:
        try:
            descriptor, name = tempfile.mkstemp(dir=self._directory)
        except OSError as error:
            raise Overloaded(f"no file for an upload: {error.strerror}") from error
        os.unlink(name)  # noqa: PTH108
        return descriptor

    def _drop_idle(self, now_s: float) -> None:
        for place, session in list(self._sessions.items()):
            if now_s - session.last_use_s > IDLE_S:
                os.close(session.descriptor)
                del self._sessions[place]

    def _forget(self, key: BinaryKey) -> None:
        """Drop unfinished uploads of a binary that is no longer wanted."""
        for place in [p for p in self._sessions if p[0] == key]:
            os.close(self._sessions.pop(place).descriptor)


def _check(request: pb.UploadRequest) -> None:
    if request.format not in (pb.UPLOAD_FORMAT_ELF, pb.UPLOAD_FORMAT_KALLSYMS):
        raise BadRequest(f"unknown format of upload {request.format}")
    if len(request.upload_hash) != HASH_BYTES:
        raise BadRequest(f"hash of the upload has {len(request.upload_hash)} bytes, not {HASH_BYTES}")
    if len(request.data) > MAX_PIECE_BYTES:
        raise BadRequest(f"piece of {len(request.data)} bytes, at most {MAX_PIECE_BYTES}")
    if not request.size_bytes or request.offset + len(request.data) > request.size_bytes:
        raise BadRequest(f"piece ends at {request.offset + len(request.data)} in an upload of {request.size_bytes} bytes")


def _not_wanted(reason: str) -> pb.UploadResponse:
    return pb.UploadResponse(status=pb.UPLOAD_STATUS_NOT_WANTED, reason=reason)
