# SPDX-License-Identifier: Apache-2.0
"""Unwind tables of the fleet, by way of the server: asked for before a binary is decoded here, offered after.

A server that does not answer, or is too old to know of tables, costs one deadline and is then left alone for a while: every binary can
be decoded here as well.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from agent.errors import PushDelayed, PushRejected
from agent.records.binary import BinaryId
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from emberwatch.v1.unwind_table import VERSION

log = logging.getLogger(__name__)

PAUSE_S = 60.0


class TableClient(Protocol):
    """The calls of ship/client.py. Both raise PushRejected and PushDelayed."""

    def get_unwind_table(self, request: symbols_pb2.GetUnwindTableRequest) -> symbols_pb2.GetUnwindTableResponse:
        """Ask for a table."""
        ...

    def put_unwind_table(self, request: symbols_pb2.PutUnwindTableRequest) -> symbols_pb2.PutUnwindTableResponse:
        """Offer a table."""
        ...


class FleetTableClient:
    """For one thread. Neither method raises."""

    def __init__(self, client: TableClient, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic_s = monotonic_s
        self._quiet_until_s = 0.0

    def fetch(self, binary_id: BinaryId) -> bytes | None:
        """The packed table of a binary, not checked; None when there is none, or nobody answers."""
        if self._is_quiet():
            return None
        request = symbols_pb2.GetUnwindTableRequest(id=_message(binary_id), version=VERSION)
        try:
            response = self._client.get_unwind_table(request)
        except PushDelayed as error:
            self._be_quiet(error)
            return None
        except PushRejected:
            return None  # Nothing is kept for such a binary (it has a strange build id): only this one is made here.
        return response.table.packed if response.status == symbols_pb2.UNWIND_TABLE_STATUS_FOUND else None

    def offer(self, binary_id: BinaryId, packed: bytes) -> None:
        """Give a table to the fleet. When that fails the next agent makes it again."""
        if self._is_quiet():
            return
        table = symbols_pb2.UnwindTable(version=VERSION, packed=packed)
        try:
            self._client.put_unwind_table(symbols_pb2.PutUnwindTableRequest(id=_message(binary_id), table=table))
        except PushDelayed as error:
            self._be_quiet(error)
        except PushRejected as error:
            log.info("unwind table not kept by the server build_id=%s error=%s", binary_id.build_id.hex(), error)

    def _is_quiet(self) -> bool:
        return self._monotonic_s() < self._quiet_until_s

    def _be_quiet(self, error: PushDelayed) -> None:
        self._quiet_until_s = self._monotonic_s() + PAUSE_S
        log.info("unwind tables of the fleet left alone seconds=%d error=%s", PAUSE_S, error)


def _message(binary_id: BinaryId) -> pb.BinaryId:
    return pb.BinaryId(build_id_kind=binary_id.build_id_kind, build_id=binary_id.build_id, content_hash=binary_id.content_hash)
