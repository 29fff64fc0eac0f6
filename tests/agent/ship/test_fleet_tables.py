# SPDX-License-Identifier: Apache-2.0
"""Tests of asking the fleet for tables, with a server that behaves and one that does not."""

from agent.errors import PushDelayed, PushRejected
from agent.records.binary import BinaryId
from agent.ship.fleet_tables import PAUSE_S, FleetTableClient
from emberwatch.v1 import symbols_pb2
from tests.support.unwind_tables import PACKED, TABLE_ID

BINARY = BinaryId(TABLE_ID.build_id_kind, TABLE_ID.build_id, TABLE_ID.content_hash)


class FakeServer:
    """Keeps one table a build id; raises what it is told to."""

    def __init__(self) -> None:
        self.tables: dict[bytes, bytes] = {}
        self.error: PushDelayed | PushRejected | None = None
        self.calls = 0

    def get_unwind_table(self, request: symbols_pb2.GetUnwindTableRequest) -> symbols_pb2.GetUnwindTableResponse:
        self._called()
        if request.id.build_id not in self.tables:
            return symbols_pb2.GetUnwindTableResponse(status=symbols_pb2.UNWIND_TABLE_STATUS_UNKNOWN)
        table = symbols_pb2.UnwindTable(version=request.version, packed=self.tables[request.id.build_id])
        return symbols_pb2.GetUnwindTableResponse(status=symbols_pb2.UNWIND_TABLE_STATUS_FOUND, table=table)

    def put_unwind_table(self, request: symbols_pb2.PutUnwindTableRequest) -> symbols_pb2.PutUnwindTableResponse:
        self._called()
        self.tables[request.id.build_id] = request.table.packed
        return symbols_pb2.PutUnwindTableResponse(status=symbols_pb2.UNWIND_TABLE_STATUS_STORED)

    def _called(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error


def test_a_table_that_was_offered_is_fetched() -> None:
    server = FakeServer()
    tables = FleetTableClient(server)
    assert tables.fetch(BINARY) is None
    tables.offer(BINARY, PACKED)
    assert tables.fetch(BINARY) == PACKED


def test_a_server_that_does_not_answer_is_left_alone_for_a_while() -> None:
    server, now_s = FakeServer(), [100.0]
    server.error = PushDelayed("no answer")
    tables = FleetTableClient(server, lambda: now_s[0])
    for _ in range(3):
        assert tables.fetch(BINARY) is None
        tables.offer(BINARY, PACKED)
    assert server.calls == 1
    now_s[0] += PAUSE_S
    server.error = None
    tables.offer(BINARY, PACKED)
    assert tables.fetch(BINARY) == PACKED


def test_a_refusal_concerns_one_binary_only() -> None:
    server = FakeServer()
    server.error = PushRejected("strange build id")
    tables = FleetTableClient(server)
    assert tables.fetch(BINARY) is None
    tables.offer(BINARY, PACKED)
    assert server.calls == 2
