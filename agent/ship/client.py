# SPDX-License-Identifier: Apache-2.0
"""The border to gRPC: pushes windows, uploads what names are made from. Foreign errors become PushRejected or PushDelayed here."""

import hashlib
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from agent.errors import ConfigError, PushDelayed, PushRejected
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2, symbols_pb2
from emberwatch.v1 import marks_pb2 as marks
from emberwatch.v1.collector_pb2_grpc import CollectorStub
from emberwatch.v1.marks_pb2 import LossReason
from emberwatch.v1.symbols_pb2_grpc import SymbolsStub

PIECE_BYTES = 1 << 20
MOST_UPLOAD_BYTES = 2 << 30
_MESSAGE_BYTES = 17 << 20
_DEADLINE_S = 30
_TABLE_DEADLINE_S = 3
"""Making a table takes less than a second: it is not worth waiting long for one."""
_REASON_KEY = "emberwatch-reason"
"""Trailing metadata of a refusal: the name of a LossReason."""
_REASONS = {
    LossReason.Name(reason): reason
    for reason in (
        marks.LOSS_REASON_REJECTED_LIMIT,
        marks.LOSS_REASON_REJECTED_TIME,
        marks.LOSS_REASON_REJECTED_AUTH,
        marks.LOSS_REASON_REJECTED_MALFORMED,
    )
}

_FINAL: dict[grpc.StatusCode, LossReason] = {
    grpc.StatusCode.INVALID_ARGUMENT: marks.LOSS_REASON_REJECTED_MALFORMED,
    grpc.StatusCode.FAILED_PRECONDITION: marks.LOSS_REASON_REJECTED_LIMIT,
    grpc.StatusCode.OUT_OF_RANGE: marks.LOSS_REASON_REJECTED_TIME,
}
"""Sending the same again would be refused again. All other codes say that a later try may pass: also those of rights, which a proxy in
between may lack for an hour."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Bytes of one binary that the server asked for. `read(offset, size)` answers exactly `size` bytes."""

    kind: pb.BinaryKind
    id: pb.BinaryId
    format: symbols_pb2.UploadFormat
    size_bytes: int
    read: Callable[[int, int], bytes]


class Client:
    """One channel to one server. Methods may be called from any thread."""

    def __init__(self, target: str, *, insecure: bool = False, deadline_s: float = _DEADLINE_S) -> None:
        """`target` is HOST:PORT. Plaintext leaves this host only when `insecure` says so; else ConfigError."""
        if not (insecure or _is_loopback(target)):
            raise ConfigError(f"server {target} is on another host and the connection is not encrypted: use --insecure to allow that")
        options = [
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.initial_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
        ]
        self._target = target
        self._deadline_s = deadline_s
        self._channel = grpc.insecure_channel(target, options)
        self._collector = CollectorStub(self._channel)  # type: ignore[no-untyped-call]
        self._symbols = SymbolsStub(self._channel)  # type: ignore[no-untyped-call]

    def push(self, request: collector_pb2.PushRequest) -> collector_pb2.PushResponse:
        """Push one window. Raises PushRejected when the server refuses it for good, PushDelayed when it may be sent again."""
        try:
            response: collector_pb2.PushResponse = self._collector.Push(request, timeout=self._deadline_s)
        except grpc.RpcError as error:
            raise self._error("push", error) from error
        return response

    def upload(self, upload: Upload) -> symbols_pb2.UploadResponse:
        """Upload in pieces, going on where an earlier try ended. Raises as `push` does; answers the last response."""
        if upload.size_bytes > MOST_UPLOAD_BYTES:
            raise PushRejected(
                f"upload of {upload.size_bytes} bytes is over the limit of {MOST_UPLOAD_BYTES}", marks.LOSS_REASON_REJECTED_LIMIT
            )
        digest = _digest(upload)
        response = self._piece(upload, digest, 0, b"")
        while response.status == symbols_pb2.UPLOAD_STATUS_CONTINUE:
            offset = response.next_offset
            size = min(PIECE_BYTES, upload.size_bytes - offset)
            if size <= 0:
                raise PushDelayed(f"upload to {self._target}: asked to go on at {offset} of {upload.size_bytes} bytes")
            response = self._piece(upload, digest, offset, upload.read(offset, size))
            if response.status == symbols_pb2.UPLOAD_STATUS_CONTINUE and response.next_offset <= offset:
                raise PushDelayed(f"upload to {self._target}: no progress at {offset} of {upload.size_bytes} bytes")
        return response

    def get_unwind_table(self, request: symbols_pb2.GetUnwindTableRequest) -> symbols_pb2.GetUnwindTableResponse:
        """Ask for the unwind table of a binary. Raises as `push` does."""
        try:
            response: symbols_pb2.GetUnwindTableResponse = self._symbols.GetUnwindTable(request, timeout=_TABLE_DEADLINE_S)
        except grpc.RpcError as error:
            raise self._error("unwind table", error) from error
        return response

    def put_unwind_table(self, request: symbols_pb2.PutUnwindTableRequest) -> symbols_pb2.PutUnwindTableResponse:
        """Offer the unwind table of a binary. Raises as `push` does."""
        try:
            response: symbols_pb2.PutUnwindTableResponse = self._symbols.PutUnwindTable(request, timeout=_TABLE_DEADLINE_S)
        except grpc.RpcError as error:
            raise self._error("unwind table", error) from error
        return response

    def close(self) -> None:
        """Close the channel; a call in flight ends as delayed."""
        self._channel.close()

    def _piece(self, upload: Upload, digest: bytes, offset: int, data: bytes) -> symbols_pb2.UploadResponse:
        request = symbols_pb2.UploadRequest(
            kind=upload.kind,
            id=upload.id,
            format=upload.format,
            size_bytes=upload.size_bytes,
            offset=offset,
            data=data,
            upload_hash=digest,
        )
        try:
            response: symbols_pb2.UploadResponse = self._symbols.Upload(request, timeout=self._deadline_s)
        except grpc.RpcError as error:
            raise self._error("upload", error) from error
        return response

    def _error(self, what: str, error: grpc.RpcError) -> PushRejected | PushDelayed:
        code, details = error.code(), error.details() or ""
        message = f"{what} to {self._target}: {code.name}: {details[:300]}"
        if code in _FINAL:
            return PushRejected(message, _reason(error, _FINAL[code]))
        # gRPC's own refusal of a large message has the code of a busy server; its text alone tells them apart.
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
            return PushRejected(message, marks.LOSS_REASON_REJECTED_LIMIT)
        return PushDelayed(message)


def _reason(error: grpc.RpcError, otherwise: LossReason) -> LossReason:
    """The server's own word for it, which is finer than the code."""
    for item in error.trailing_metadata() or ():
        if item.key == _REASON_KEY:
            return _REASONS.get(str(item.value), otherwise)
    return otherwise


def _digest(upload: Upload) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for offset in range(0, upload.size_bytes, PIECE_BYTES):
        digest.update(upload.read(offset, min(PIECE_BYTES, upload.size_bytes - offset)))
    return digest.digest()


def _is_loopback(target: str) -> bool:
    """Only names and addresses that cannot leave the host."""
    if target.startswith("unix:"):
        return True
    host = target.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
