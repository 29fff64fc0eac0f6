# SPDX-License-Identifier: Apache-2.0
"""The border to gRPC: takes pushes and uploads, gives our errors the status that tells an agent whether to try again.

    BadRequest, LimitExceeded   INVALID_ARGUMENT     never again: lay it aside
    TimeRejected                OUT_OF_RANGE         never again
    Overloaded                  RESOURCE_EXHAUSTED   later
    any other ServerError       UNAVAILABLE          later, once somebody has mended the server

The metadata `emberwatch-reason` of a refusal holds the LossReason for what was in it, by name.
"""

import logging
from typing import NoReturn

import grpc

from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import symbols_pb2
from emberwatch.v1.collector_pb2_grpc import CollectorServicer, add_CollectorServicer_to_server
from emberwatch.v1.symbols_pb2_grpc import SymbolsServicer, add_SymbolsServicer_to_server
from server.errors import BadRequest, LimitExceeded, Overloaded, ServerError
from server.ingest.push import Ingest, SymbolService
from server.ingest.window_time import TimeRejected
from server.symbols.unwind_tables import UnwindTables

log = logging.getLogger(__name__)

REASON_KEY = "emberwatch-reason"
_ANSWERS: tuple[tuple[type[ServerError], grpc.StatusCode, str], ...] = (
    (TimeRejected, grpc.StatusCode.OUT_OF_RANGE, "LOSS_REASON_REJECTED_TIME"),
    (LimitExceeded, grpc.StatusCode.INVALID_ARGUMENT, "LOSS_REASON_REJECTED_LIMIT"),
    (BadRequest, grpc.StatusCode.INVALID_ARGUMENT, "LOSS_REASON_REJECTED_MALFORMED"),
    (Overloaded, grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
)


def add_services(server: grpc.Server, ingest: Ingest, symbols: SymbolService, unwind_tables: UnwindTables) -> None:
    """Register Collector and Symbols on a gRPC server."""
    add_CollectorServicer_to_server(_Collector(ingest), server)  # type: ignore[no-untyped-call]
    add_SymbolsServicer_to_server(_Symbols(symbols, unwind_tables), server)  # type: ignore[no-untyped-call]


class _Collector(CollectorServicer):
    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    def Push(self, request: collector.PushRequest, context: grpc.ServicerContext) -> collector.PushResponse:  # noqa: N802 (gRPC's name)
        """Store one window, or one part of it."""
        try:
            return self._ingest.push(request)
        except ServerError as error:
            _refuse(context, f"push of agent {request.agent_id.hex()} sequence {request.sequence}", error)


class _Symbols(SymbolsServicer):
    def __init__(self, symbols: SymbolService, unwind_tables: UnwindTables) -> None:
        self._symbols = symbols
        self._unwind_tables = unwind_tables

    def Upload(self, request: symbols_pb2.UploadRequest, context: grpc.ServicerContext) -> symbols_pb2.UploadResponse:  # noqa: N802
        """Take one piece of an upload."""
        try:
            return self._symbols.upload(request)
        except ServerError as error:
            _refuse(context, f"upload of build id {request.id.build_id.hex()}", error)

    def GetUnwindTable(  # noqa: N802
        self, request: symbols_pb2.GetUnwindTableRequest, context: grpc.ServicerContext
    ) -> symbols_pb2.GetUnwindTableResponse:
        """Give a table that some agent has made."""
        try:
            return self._unwind_tables.get(request)
        except ServerError as error:
            _refuse(context, f"unwind table for build id {request.id.build_id.hex()}", error)

    def PutUnwindTable(  # noqa: N802
        self, request: symbols_pb2.PutUnwindTableRequest, context: grpc.ServicerContext
    ) -> symbols_pb2.PutUnwindTableResponse:
        """Keep a table for other agents."""
        try:
            return self._unwind_tables.put(request)
        except ServerError as error:
            _refuse(context, f"unwind table of build id {request.id.build_id.hex()}", error)


def _refuse(context: grpc.ServicerContext, what: str, error: ServerError) -> NoReturn:
    """End the call with the status of the error, and its sentence."""
    for kind, code, reason in _ANSWERS:
        if isinstance(error, kind):
            if reason:
                context.set_trailing_metadata(((REASON_KEY, reason),))
            log.warning("refused what=%r code=%s error=%s", what, code.name, error)
            context.abort(code, str(error))
    log.error("failed what=%r error=%s", what, error)
    context.abort(grpc.StatusCode.UNAVAILABLE, f"the server cannot do it now: {error}")
