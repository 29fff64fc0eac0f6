# SPDX-License-Identifier: Apache-2.0
"""Uploads what names are made from, when the server asks for it: in a thread of its own, one binary at a time."""

import logging
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from agent.errors import PushDelayed, PushRejected
from agent.process.cutter import cut_for_upload
from agent.records.binary import Binary, BinaryId
from agent.records.kernel_layout import KernelLayout
from agent.ship.client import Upload
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2

log = logging.getLogger(__name__)

_MOST_WAITING = 256
_RETRY_S = 30.0


class OpenBinaries(Protocol):
    """Where descriptors of seen binaries come from."""

    def open_binary(self, binary_id: BinaryId) -> int | None:
        """A descriptor that the caller closes, or None."""
        ...

    def release_binary(self, binary_id: BinaryId) -> None:
        """The binary needs no descriptor any more."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """What the uploader reads from. `layout` answers the newest layout; `kallsyms` writes symbols as an upload."""

    binaries: OpenBinaries
    layout: Callable[[], KernelLayout]
    kallsyms: Callable[[Binary, BinaryIO], bool]
    directory: Path
    """Where cut files lie, without a name, while they are sent."""


class Uploader:
    """`want` may be called from any thread."""

    def __init__(self, upload: Callable[[Upload], symbols_pb2.UploadResponse], sources: Sources, retry_s: float = _RETRY_S) -> None:
        """After a failure that may pass nothing is uploaded for `retry_s`."""
        self._upload = upload
        self._retry_s = retry_s
        self._sources = sources
        self._waiting: queue.Queue[symbols_pb2.SymbolRequest | None] = queue.Queue(_MOST_WAITING)
        self._asked: set[bytes] = set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uploader", daemon=True)

    def start(self) -> None:
        """Begin to upload."""
        self._thread.start()

    def want(self, requests: Iterable[symbols_pb2.SymbolRequest]) -> None:
        """Upload these; each is tried once, until the server asks again after a failure that may pass."""
        for request in requests:
            name = request.SerializeToString(deterministic=True)
            if name in self._asked:
                continue
            try:
                self._waiting.put_nowait(request)
            except queue.Full:
                return  # The server asks again with its next answer.
            self._asked.add(name)

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing is waiting; False when `timeout_s` was not enough."""
        waiter = threading.Thread(target=self._waiting.join, daemon=True)
        waiter.start()
        waiter.join(timeout_s)
        return not waiter.is_alive()

    def close(self, timeout_s: float) -> None:
        """End the thread; an upload in flight goes on from its offset at the next start."""
        self._closing.set()
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            log.debug("uploader closes with a full queue")
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closing.is_set():
            request = self._waiting.get()
            try:
                if request is not None:
                    self._serve(request)
            finally:
                self._waiting.task_done()

    def _serve(self, request: symbols_pb2.SymbolRequest) -> None:
        try:
            if request.kind in (pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE):
                self._send_kallsyms(request)
            else:
                self._send_binary(request)
        except PushRejected as error:
            log.warning("upload refused build_id=%s error=%s", request.id.build_id.hex(), error)
        except (PushDelayed, OSError) as error:  # The disk or the descriptors may have room again later.
            log.info("upload put off build_id=%s error=%s", request.id.build_id.hex(), error)
            self._put_off(request)
        except Exception:
            log.exception("upload failed build_id=%s", request.id.build_id.hex())
            self._put_off(request)

    def _put_off(self, request: symbols_pb2.SymbolRequest) -> None:
        """Wait, then serve it again when the server asks again."""
        self._closing.wait(self._retry_s)
        self._asked.discard(request.SerializeToString(deterministic=True))

    def _send_kallsyms(self, request: symbols_pb2.SymbolRequest) -> None:
        wanted = _binary_id(request)
        for found in self._sources.layout().ranges:
            if found.binary is not None and (found.binary.kind, found.binary.id) == (request.kind, wanted):
                with tempfile.TemporaryFile(dir=self._sources.directory) as file:
                    if self._sources.kallsyms(found.binary, file):
                        self._send(request, symbols_pb2.UPLOAD_FORMAT_KALLSYMS, file.fileno())
                return

    def _send_binary(self, request: symbols_pb2.SymbolRequest) -> None:
        wanted = _binary_id(request)
        descriptor = self._sources.binaries.open_binary(wanted)
        if descriptor is None:
            return
        try:
            cut = cut_for_upload(descriptor, self._sources.directory)
        finally:
            os.close(descriptor)
        if cut.fd is None:
            log.info("upload impossible build_id=%s reason=%s", request.id.build_id.hex(), cut.reason)
            return
        try:
            self._send(request, symbols_pb2.UPLOAD_FORMAT_ELF, cut.fd)
        finally:
            os.close(cut.fd)
        self._sources.binaries.release_binary(wanted)

    def _send(self, request: symbols_pb2.SymbolRequest, upload_format: symbols_pb2.UploadFormat, file: int) -> None:
        size_bytes = os.fstat(file).st_size

        def read(at: int, size: int) -> bytes:
            return os.pread(file, size, at)

        response = self._upload(Upload(request.kind, request.id, upload_format, size_bytes, read))
        log.info("upload done build_id=%s bytes=%d status=%d", request.id.build_id.hex(), size_bytes, response.status)


def _binary_id(request: symbols_pb2.SymbolRequest) -> BinaryId:
    return BinaryId(request.id.build_id_kind, request.id.build_id, request.id.content_hash)
