# SPDX-License-Identifier: Apache-2.0
"""Keeps the unwind tables that agents made, for the agents that meet the same binary next; bounded by bytes.

The agent that was first decodes a binary, offers its table here, and nobody in the fleet decodes it again. The server never decodes: it
checks that what it keeps is well formed and of the binary it is offered for; whether the rules are right it cannot know, so the first table
stays, and an agent that lies can spoil the stacks of a binary as it can spoil its names. A file is named by a digest of the identity:
nothing that a client sends becomes part of a path.
"""

import logging
import os
import threading
from pathlib import Path

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from emberwatch.v1.unwind_table import MAX_PACKED_BYTES, VERSION, UnwindTableError, identity_digest, unpack
from server.errors import BadRequest, Overloaded, ServerError
from server.symbols.identity import key_from_proto

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 30
_SUFFIX = ".unwind"
_FOUND = symbols_pb2.UNWIND_TABLE_STATUS_FOUND
_UNKNOWN = symbols_pb2.UNWIND_TABLE_STATUS_UNKNOWN
_STORED = symbols_pb2.UNWIND_TABLE_STATUS_STORED
_NOT_WANTED = symbols_pb2.UNWIND_TABLE_STATUS_NOT_WANTED


class UnwindTables:
    """Packed tables by identity. Safe for several threads."""

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        """Take over a directory, whatever it holds. Raises ServerError when it cannot be used."""
        self._directory = directory
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._sizes = self._scan()
        except OSError as error:
            raise ServerError(f"cannot keep unwind tables in {directory}: {error.strerror}") from error

    def get(self, request: symbols_pb2.GetUnwindTableRequest) -> symbols_pb2.GetUnwindTableResponse:
        """The table of a binary, if there is one. Raises BadRequest for an identity that no binary has."""
        digest = _digest(request.id)
        packed = self._load(digest) if request.version == VERSION else None
        if packed is None:
            return symbols_pb2.GetUnwindTableResponse(status=_UNKNOWN)
        return symbols_pb2.GetUnwindTableResponse(status=_FOUND, table=symbols_pb2.UnwindTable(version=VERSION, packed=packed))

    def put(self, request: symbols_pb2.PutUnwindTableRequest) -> symbols_pb2.PutUnwindTableResponse:
        """Keep a table. Raises BadRequest for one that is malformed, Overloaded when the disk refuses."""
        digest = _digest(request.id)
        if request.table.version != VERSION:
            return symbols_pb2.PutUnwindTableResponse(status=_NOT_WANTED, reason=f"only tables of version {VERSION} are kept")
        try:
            if not isinstance(unpack(request.table.packed, digest), tuple):
                raise BadRequest("an unwind table without rows")
        except UnwindTableError as error:
            raise BadRequest(f"unwind table refused: {error}") from error
        with self._lock:
            if digest.hex() in self._sizes:
                return symbols_pb2.PutUnwindTableResponse(status=_NOT_WANTED, reason="known already")
            self._write(digest.hex(), request.table.packed)
        return symbols_pb2.PutUnwindTableResponse(status=_STORED)

    def size_bytes(self) -> int:
        """Of all tables."""
        with self._lock:
            return sum(self._sizes.values())

    def _load(self, digest: bytes) -> bytes | None:
        """A table that is whole; one that is damaged is dropped, so that the next agent can bring it again."""
        name = digest.hex()
        with self._lock:
            if name not in self._sizes:
                return None
        path = self._path(name)
        try:
            with path.open("rb") as file:
                packed = file.read(MAX_PACKED_BYTES + 1)
            unpack(packed, digest)
            os.utime(path)
        except (OSError, UnwindTableError) as error:
            log.warning("unwind table dropped file=%s reason=%s", path.name, error)
            with self._lock:
                self._drop(name)
            return None
        with self._lock:
            if name in self._sizes:
                self._sizes[name] = self._sizes.pop(name)
        return packed

    def _write(self, name: str, packed: bytes) -> None:
        part = self._directory / f"{name}.part"
        try:
            part.write_bytes(packed)
            part.replace(self._path(name))
        except OSError as error:
            raise Overloaded(f"unwind table cannot be written: {error.strerror}") from error
        self._sizes[name] = len(packed)
        while sum(self._sizes.values()) > self._max_bytes and len(self._sizes) > 1:
            self._drop(next(iter(self._sizes)))

    def _path(self, name: str) -> Path:
        return self._directory / (name + _SUFFIX)

    def _drop(self, name: str) -> None:
        self._sizes.pop(name, None)
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            log.warning("unwind table stays file=%s reason=%s", name, error.strerror)

    def _scan(self) -> dict[str, int]:
        """Sizes of the files that are there, those used longest ago first."""
        found = []
        for entry in os.scandir(self._directory):
            if entry.name.endswith(".part"):
                Path(entry.path).unlink(missing_ok=True)
            elif entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime_ns, entry.name.removesuffix(_SUFFIX), status.st_size))
        return {name: size for _, name, size in sorted(found)}


def _digest(identity: pb.BinaryId) -> bytes:
    key = key_from_proto(pb.BINARY_KIND_ELF, identity)
    return identity_digest(key.build_id_kind, key.build_id, key.content_hash)
