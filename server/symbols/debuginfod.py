# SPDX-License-Identifier: Apache-2.0
"""One request to one debuginfod server: GET URL/buildid/HEX/debuginfo, with a bound on everything (debuginfod(8), "WEBAPI").

The address comes from the settings alone; of the request only the build id varies, and that is hex digits made here. No redirect is
followed: a server must not send this one anywhere. What comes back is a file only when it starts as ELF and is as long as it was said
to be; whether it is the right one is for the caller to see.
"""

import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from server.errors import ConfigError
from server.symbols.identity import MAX_BUILD_ID_BYTES, MIN_BUILD_ID_BYTES

PIECE_BYTES = 256 << 10
MAX_URL_CHARS = 512
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server of the chain."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Of the path, without a slash at its end."""

    @property
    def url(self) -> str:
        """As it is shown: credentials cannot be in it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}[self.scheme]
        return f"{self.scheme}://{host}{'' if self.port == usual else f':{self.port}'}{self.prefix}"


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one request."""

    size_bytes: int = 2 << 30
    silence_s: float = 20.0
    """Longest wait for a connection, or for the next bytes."""
    total_s: float = 600.0


class Answer(StrEnum):
    """How a request ended."""

    FOUND = "found"
    MISSING = "missing"
    """404: it does not have this one."""
    UNUSABLE = "unusable"
    """It answered with something that is no debug file."""
    LIMIT = "limit"
    """It is too large for this server."""
    UNREACHABLE = "unreachable"
    """No answer, none in time, or one that the server itself calls a failure."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The end of a request; `reason` is "" for FOUND."""

    answer: Answer
    reason: str = ""
    size_bytes: int = 0


class _Ended(Exception):
    """Ends a request early."""

    def __init__(self, answer: Answer, reason: str) -> None:
        super().__init__(reason)
        self.fetched = Fetched(answer, reason)


def parse_upstreams(text: str) -> tuple[Upstream, ...]:
    """The servers of a setting, spaces between, in the order in which they are asked. Raises ConfigError naming the one that is wrong."""
    return tuple(dict.fromkeys(_parse_upstream(url) for url in text.split()))


def _parse_upstream(url: str) -> Upstream:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"debuginfod server {url!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"debuginfod server {url!r} must be http://HOST or https://HOST, with a port and a path if need be")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(f"debuginfod server {url!r} must be an address alone: no user, no question mark, no #")
    if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable():
        raise ConfigError(f"debuginfod server {url[:80]!r} holds characters that no address has")
    return Upstream(parts.scheme, parts.hostname, port or {"http": 80, "https": 443}[parts.scheme], parts.path.rstrip("/"))


class Request:
    """One GET. `run` once; `abort` from another thread ends it."""

    def __init__(self, upstream: Upstream, build_id: bytes, limits: FetchLimits) -> None:
        if not MIN_BUILD_ID_BYTES <= len(build_id) <= MAX_BUILD_ID_BYTES:
            raise ValueError(f"build id of {len(build_id)} bytes")
        self._limits = limits
        self._path = f"{upstream.prefix}/buildid/{build_id.hex()}/debuginfo"
        kind = http.client.HTTPSConnection if upstream.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(upstream.host, upstream.port, timeout=limits.silence_s)
        self._socket: socket.socket | None = None
        """Kept beside the connection, which lets go of it when the answer has no end of its own."""
        self._is_over_time = False

    def run(self, into: int, room: Callable[[int], str]) -> Fetched:
        """Write the answer to the empty file `into`. `room` says why so many more bytes may not be written; "" when they may."""
        end_s = time.monotonic() + self._limits.total_s
        watch = threading.Timer(self._limits.total_s, self._end_of_time)
        watch.daemon = True
        watch.start()
        try:
            return self._get(into, room, end_s)
        except _Ended as ended:
            return ended.fetched
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._is_over_time:
                return Fetched(Answer.UNREACHABLE, f"not done in {self._limits.total_s:g} s")
            if isinstance(error, TimeoutError):
                return Fetched(Answer.UNREACHABLE, f"silent for {self._limits.silence_s:g} s")
            return Fetched(Answer.UNREACHABLE, _words(error))
        finally:
            watch.cancel()
            self._connection.close()

    def abort(self) -> None:
        """End the request now, whatever it waits for."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # Not connected any more: it ends by itself.
                self._socket.shutdown(socket.SHUT_RDWR)

    def _end_of_time(self) -> None:
        self._is_over_time = True
        self.abort()

    def _get(self, into: int, room: Callable[[int], str], end_s: float) -> Fetched:
        self._connection.connect()
        self._socket = self._connection.sock
        self._connection.request("GET", self._path, headers={"User-Agent": "emberwatch", "Accept": "*/*"})
        response = self._connection.getresponse()
        self._check_head(response, room)
        size = 0
        while piece := response.read1(PIECE_BYTES):
            if not size and piece[:4] != _ELF:
                raise _Ended(Answer.UNUSABLE, f"answers with {_start_words(piece)}, not an ELF file")
            size += len(piece)
            if size > self._limits.size_bytes:
                raise _Ended(Answer.LIMIT, f"more than {self._limits.size_bytes} bytes")
            if time.monotonic() > end_s:
                raise _Ended(Answer.UNREACHABLE, f"not done in {self._limits.total_s:g} s")
            refusal = room(len(piece))
            if refusal:
                raise _Ended(Answer.LIMIT, refusal)
            _write(into, piece)
        if self._is_over_time:
            raise _Ended(Answer.UNREACHABLE, f"not done in {self._limits.total_s:g} s")
        if not size:
            raise _Ended(Answer.UNUSABLE, "answers with nothing")
        if response.length:  # What http.client still expected when the connection ended.
            raise _Ended(Answer.UNREACHABLE, f"the answer was cut after {size} bytes")
        return Fetched(Answer.FOUND, "", size)

    def _check_head(self, response: http.client.HTTPResponse, room: Callable[[int], str]) -> None:
        status = response.status
        if status in (404, 410):
            raise _Ended(Answer.MISSING, "does not have it")
        if 300 <= status < 400:
            raise _Ended(Answer.UNUSABLE, f"sends elsewhere ({status}), which is not followed")
        if status != 200:
            kind = Answer.UNREACHABLE if status >= 500 or status in (408, 429) else Answer.UNUSABLE
            raise _Ended(kind, f"answers {status}")
        if response.getheader("Content-Encoding", "identity") not in ("identity", ""):
            raise _Ended(Answer.UNUSABLE, "answers with a compression that was not asked for")
        if response.length is not None and response.length > self._limits.size_bytes:
            raise _Ended(Answer.LIMIT, f"{response.length} bytes, at most {self._limits.size_bytes} are taken")
        refusal = room(response.length or 0)
        if refusal:
            raise _Ended(Answer.LIMIT, refusal)


def _start_words(piece: bytes) -> str:
    """What an answer starts with, in words that can be shown."""
    if not any(piece[:64]):
        return "zeros"
    return "HTML" if piece[:64].lstrip().lower().startswith((b"<!doctype", b"<html", b"<")) else f"bytes {piece[:8].hex(' ')}"


def _words(error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error)
    return f"{type(error).__name__}: {said}"[:200] if not isinstance(error, OSError) else str(said)[:200]


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
