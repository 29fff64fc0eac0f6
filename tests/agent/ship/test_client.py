# SPDX-License-Identifier: Apache-2.0
"""The client against a real gRPC server on loopback."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest

from agent.errors import ConfigError, PushDelayed, PushRejected
from agent.ship.client import Client, Upload
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2, symbols_pb2
from emberwatch.v1 import marks_pb2 as marks
from emberwatch.v1.collector_pb2_grpc import CollectorServicer, add_CollectorServicer_to_server
from emberwatch.v1.symbols_pb2_grpc import SymbolsServicer, add_SymbolsServicer_to_server
from tests.support.batches import batch_of, push_of

MIB = 1 << 20


@dataclass
class Server(CollectorServicer, SymbolsServicer):
    """Answers as told; keeps what was uploaded."""

    refusal: tuple[grpc.StatusCode, str] | None = None
    pushes: list[collector_pb2.PushRequest] = field(default_factory=list)
    uploaded: bytearray = field(default_factory=bytearray)
    breaks_at: int = -1
    offsets: list[int] = field(default_factory=list)
    hashes: set[bytes] = field(default_factory=set)

    def Push(self, request: collector_pb2.PushRequest, context: grpc.ServicerContext) -> collector_pb2.PushResponse:  # noqa: N802
        if self.refusal:
            code, reason = self.refusal
            context.set_trailing_metadata((("emberwatch-reason", reason),) if reason else ())
            context.abort(code, "no")
        self.pushes.append(request)
        return collector_pb2.PushResponse(status=collector_pb2.PUSH_STATUS_STORED)

    def Upload(self, request: symbols_pb2.UploadRequest, context: grpc.ServicerContext) -> symbols_pb2.UploadResponse:  # noqa: N802
        self.offsets.append(request.offset)
        self.hashes.add(request.upload_hash)
        if request.data and request.offset == self.breaks_at:
            self.breaks_at = -1
            context.abort(grpc.StatusCode.UNAVAILABLE, "restart")
        if request.data:
            assert request.offset == len(self.uploaded)
            self.uploaded += request.data
        is_done = len(self.uploaded) == request.size_bytes
        status = symbols_pb2.UPLOAD_STATUS_DONE if is_done else symbols_pb2.UPLOAD_STATUS_CONTINUE
        return symbols_pb2.UploadResponse(status=status, next_offset=len(self.uploaded))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    grpc_server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", 4 * MIB)])
    add_CollectorServicer_to_server(server, grpc_server)  # type: ignore[no-untyped-call]
    add_SymbolsServicer_to_server(server, grpc_server)  # type: ignore[no-untyped-call]
    port = grpc_server.add_insecure_port("127.0.0.1:0")
    grpc_server.start()
    made = Client(f"127.0.0.1:{port}", deadline_s=60)
    yield made
    made.close()
    grpc_server.stop(0).wait()


def _upload(data: bytes) -> Upload:
    identity = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=b"\x07" * 20)
    return Upload(pb.BINARY_KIND_ELF, identity, symbols_pb2.UPLOAD_FORMAT_ELF, len(data), lambda offset, size: data[offset : offset + size])


def test_push_arrives_whole(client: Client, server: Server) -> None:
    push = push_of(batch_of([("web", "main", ["app+0x10"], 7)]))
    assert client.push(push).status == collector_pb2.PUSH_STATUS_STORED
    assert server.pushes == [push]


@pytest.mark.parametrize(
    ("code", "word", "reason"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "", marks.LOSS_REASON_REJECTED_MALFORMED),
        (grpc.StatusCode.INVALID_ARGUMENT, "LOSS_REASON_REJECTED_LIMIT", marks.LOSS_REASON_REJECTED_LIMIT),
        (grpc.StatusCode.INVALID_ARGUMENT, "no such word", marks.LOSS_REASON_REJECTED_MALFORMED),
        (grpc.StatusCode.OUT_OF_RANGE, "", marks.LOSS_REASON_REJECTED_TIME),
    ],
)
def test_final_refusals_say_why(client: Client, server: Server, code: grpc.StatusCode, word: str, reason: marks.LossReason) -> None:
    server.refusal = (code, word)
    with pytest.raises(PushRejected, match=code.name) as caught:
        client.push(push_of(batch_of([])))
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    ],
)
def test_other_refusals_are_delays(client: Client, server: Server, code: grpc.StatusCode) -> None:
    server.refusal = (code, "")
    with pytest.raises(PushDelayed, match=code.name):
        client.push(push_of(batch_of([])))


def test_message_over_the_servers_limit_is_final(client: Client) -> None:
    with pytest.raises(PushRejected, match="larger than max") as caught:
        client.push(collector_pb2.PushRequest(payload=b"x" * (5 * MIB)))
    assert caught.value.reason == marks.LOSS_REASON_REJECTED_LIMIT


def test_server_that_is_not_there_is_a_delay() -> None:
    client = Client("127.0.0.1:1", deadline_s=60)
    with pytest.raises(PushDelayed, match=r"127\.0\.0\.1:1"):
        client.push(push_of(batch_of([])))
    client.close()


def test_upload_goes_on_where_it_broke_off(client: Client, server: Server) -> None:
    data = bytes(range(256)) * (10 * MIB // 1024)
    server.breaks_at = MIB
    with pytest.raises(PushDelayed):
        client.upload(_upload(data))
    assert client.upload(_upload(data)).status == symbols_pb2.UPLOAD_STATUS_DONE
    assert bytes(server.uploaded) == data
    assert server.offsets == [0, 0, MIB, 0, MIB, 2 * MIB]
    assert server.hashes == {hashlib.blake2b(data, digest_size=16).digest()}


def test_upload_over_the_limit_is_refused_before_it_is_read() -> None:
    client = Client("127.0.0.1:1")
    with pytest.raises(PushRejected, match="over the limit"):
        client.upload(Upload(pb.BINARY_KIND_ELF, pb.BinaryId(), symbols_pb2.UPLOAD_FORMAT_ELF, (2 << 30) + 1, lambda *_: b""))
    client.close()


@pytest.mark.parametrize("target", ["profiler.example:4041", "10.0.0.7:4041", "[2001:db8::7]:4041", "localhost.example:4041"])
def test_plaintext_to_another_host_needs_a_word(target: str) -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        Client(target)
    Client(target, insecure=True).close()


@pytest.mark.parametrize("target", ["localhost:4041", "127.0.0.9:4041", "[::1]:4041"])
def test_plaintext_on_this_host_is_fine(target: str) -> None:
    Client(target).close()


def test_unwind_tables_of_a_server_that_knows_of_none_are_delayed(client: Client) -> None:
    with pytest.raises(PushDelayed, match="UNIMPLEMENTED"):
        client.get_unwind_table(symbols_pb2.GetUnwindTableRequest())
    with pytest.raises(PushDelayed, match="UNIMPLEMENTED"):
        client.put_unwind_table(symbols_pb2.PutUnwindTableRequest())
