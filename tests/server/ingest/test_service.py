# SPDX-License-Identifier: Apache-2.0
"""Over a real channel: statuses that tell an agent whether to try again, and sentences that tell a person why."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import symbols_pb2
from emberwatch.v1.collector_pb2_grpc import CollectorStub
from emberwatch.v1.symbols_pb2_grpc import SymbolsStub
from emberwatch.v1.unwind_table import VERSION
from server.errors import Overloaded, ServerError
from server.ingest.push import Ingest
from server.ingest.service import REASON_KEY, add_services
from server.store.push import Appended, DecodedPush
from server.store.sql_store import SqlStore
from server.symbols.unwind_tables import UnwindTables
from tests.server.ingest.test_push import NOW, ROWS, FakeSymbols
from tests.support.batches import batch_of, push_of
from tests.support.pushes import new_store, totals
from tests.support.unwind_tables import PACKED, TABLE_ID

Push = Callable[[collector.PushRequest], collector.PushResponse]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def channel(store: SqlStore, tmp_path: Path) -> Iterator[grpc.Channel]:
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        symbols = FakeSymbols()
        add_services(server, Ingest(store, symbols, lambda: NOW), symbols, UnwindTables(tmp_path / "unwind"))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
            yield opened
        server.stop(None).wait()


@pytest.fixture
def push(channel: grpc.Channel) -> Push:
    found: Push = CollectorStub(channel).Push  # type: ignore[no-untyped-call]
    return found


def refusal(push: Push, request: collector.PushRequest) -> tuple[grpc.StatusCode, str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        push(request)
    reasons = [str(item.value) for item in caught.value.trailing_metadata() or () if item.key == REASON_KEY]
    return caught.value.code(), "".join(reasons), caught.value.details() or ""


def test_push_is_stored_and_answered(push: Push, store: SqlStore) -> None:
    assert push(push_of(batch_of(ROWS))).status == collector.PUSH_STATUS_STORED
    assert push(push_of(batch_of(ROWS))).status == collector.PUSH_STATUS_DUPLICATE
    assert totals(store) == {"web": 30}


def test_malformed_push_is_refused_for_good(push: Push) -> None:
    request = push_of(batch_of(ROWS))
    request.payload += b"\0"
    code, reason, words = refusal(push, request)
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "LOSS_REASON_REJECTED_MALFORMED")
    assert words == "something follows the zstd frame in the payload"


def test_push_over_a_limit_names_the_limit(push: Push) -> None:
    request = push_of(batch_of(ROWS))
    request.raw_size_bytes = (64 << 20) + 1
    code, reason, words = refusal(push, request)
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "LOSS_REASON_REJECTED_LIMIT")
    assert words == "the payload says it holds 67108865 bytes; the limit is 67108864"


def test_push_of_another_age_is_refused_for_its_time(push: Push) -> None:
    code, reason, words = refusal(push, push_of(batch_of(ROWS), start_unix_ns=NOW + 2 * 3600 * 10**9))
    assert (code, reason) == (grpc.StatusCode.OUT_OF_RANGE, "LOSS_REASON_REJECTED_TIME")
    assert "120.0 min from now" in words


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Overloaded("the disk is full"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (ServerError("the database is damaged"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_trouble_of_the_server_may_be_tried_again(
    push: Push, store: SqlStore, monkeypatch: pytest.MonkeyPatch, error: ServerError, code: grpc.StatusCode
) -> None:
    def fail(_store: SqlStore, _push: DecodedPush) -> Appended:
        raise error

    monkeypatch.setattr(SqlStore, "append", fail)
    found, reason, words = refusal(push, push_of(batch_of(ROWS)))
    assert (found, reason) == (code, "")
    assert str(error) in words
    monkeypatch.undo()
    assert push(push_of(batch_of(ROWS))).status == collector.PUSH_STATUS_STORED


def test_refused_upload_has_a_status_too(channel: grpc.Channel) -> None:
    upload = SymbolsStub(channel).Upload  # type: ignore[no-untyped-call]
    with pytest.raises(grpc.RpcError) as caught:
        upload(symbols_pb2.UploadRequest(size_bytes=7))
    assert (caught.value.code(), caught.value.details()) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "upload of 7 bytes is not taken here",
    )


def test_an_unwind_table_goes_from_one_agent_to_another(channel: grpc.Channel) -> None:
    stub = SymbolsStub(channel)  # type: ignore[no-untyped-call]
    asked = symbols_pb2.GetUnwindTableRequest(id=TABLE_ID, version=VERSION)
    assert stub.GetUnwindTable(asked).status == symbols_pb2.UNWIND_TABLE_STATUS_UNKNOWN
    offer = symbols_pb2.PutUnwindTableRequest(id=TABLE_ID, table=symbols_pb2.UnwindTable(version=VERSION, packed=PACKED))
    assert stub.PutUnwindTable(offer).status == symbols_pb2.UNWIND_TABLE_STATUS_STORED
    assert stub.GetUnwindTable(asked).table.packed == PACKED


def test_a_malformed_unwind_table_is_refused_for_good(channel: grpc.Channel) -> None:
    stub = SymbolsStub(channel)  # type: ignore[no-untyped-call]
    offer = symbols_pb2.PutUnwindTableRequest(id=TABLE_ID, table=symbols_pb2.UnwindTable(version=VERSION, packed=PACKED[:-1]))
    with pytest.raises(grpc.RpcError) as caught:
        stub.PutUnwindTable(offer)
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, "unwind table refused: damaged")
    with pytest.raises(grpc.RpcError) as caught:
        stub.GetUnwindTable(symbols_pb2.GetUnwindTableRequest(version=VERSION))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
