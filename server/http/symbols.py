# SPDX-License-Identifier: Apache-2.0
"""The routes of the symbol desk: which binaries lack names and why, trying again, and files that people bring.

PUT /api/v1/symbols/files/TOKEN takes a file whole or in pieces (Content-Range: bytes FIRST-LAST/SIZE), each at most MOST_PIECE_BYTES;
TOKEN is 16 to 64 hex digits that the sender chose. Each answer tells how many bytes are here: that is where to go on.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from emberwatch.v1 import batch_pb2 as pb
from server.http.failures import NotThere, failure
from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.sizes import MOST_PIECE_BYTES
from server.query.binary_query import BinaryRow, MarkRow, name_costs
from server.query.complaint import QueryError
from server.query.profile_query import ProfileQuery
from server.symbols.desk import DeskFacts, Remedy, SymbolDesk, remedy_for_mark
from server.symbols.file_uploads import Piece
from server.symbols.history import Attempt
from server.symbols.ledger import NameState
from server.symbols.marks import mark_words

MOST_BODY_BYTES = 4096
DEFAULT_ROWS, MOST_ROWS = 500, 5000
_TOKEN = re.compile(r"[0-9a-f]{16,64}")
_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){4,64}")
_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
Json = dict[str, Any]


def symbols_blueprint(query: ProfileQuery, desk: SymbolDesk) -> Blueprint:
    """Make the routes."""
    api = Blueprint("symbols", __name__, url_prefix="/api/v1/symbols")

    def parameters(*allowed: str) -> Parameters:
        return Parameters(request.args, allowed, query.now_unix_ns())

    @api.get("")
    def listed() -> Response:
        given = parameters("query", *RANGE, "limit")
        limit = given.number("limit", DEFAULT_ROWS, 1, MOST_ROWS)
        costs = name_costs(query, given.selector(), given.range())
        shown = costs.binaries[:limit]
        rows = [_binary_json(row, facts) for row, facts in zip(shown, desk.facts([row.info for row in shown]), strict=True)]
        return json_response(
            {
                "binaries": rows,
                "binaries_total": len(costs.binaries),
                "marks": [_mark_json(row) for row in costs.marks],
                "pending": desk.pending(),
            }
        )

    @api.post("/retry")
    def retried() -> Response:
        # Only this type: a form on a foreign site cannot send it without asking first, and nobody answers that question here.
        if request.mimetype != "application/json":
            return failure(415, "the binary is named in JSON", "set the header Content-Type: application/json")
        if (request.content_length or 0) > MOST_BODY_BYTES:
            return failure(413, f"the name of a binary has at most {MOST_BODY_BYTES} bytes")
        state = desk.retry(_identity(request.stream.read(MOST_BODY_BYTES)))
        if state is None:
            raise NotThere("there is no such binary", hint="read the list again: ids are those of GET /api/v1/symbols")
        return json_response({"state": state.state, "reason": state.reason})

    _file_routes(api, desk)
    return api


def _file_routes(api: Blueprint, desk: SymbolDesk) -> None:
    @api.get("/files")
    def held() -> Response:
        build_id = request.args.get("build_id", "")
        if not _BUILD_ID.fullmatch(build_id):
            raise QueryError("build_id must be 8 to 128 hex digits in lower case")
        return json_response({"held": desk.held(bytes.fromhex(build_id)).name.lower()})

    @api.get("/files/<token>")
    def came(token: str) -> Response:
        return json_response({"received": desk.received(_token(token))})

    @api.put("/files/<token>")
    def taken(token: str) -> Response:
        if request.mimetype != "application/octet-stream":
            return failure(415, "a file is sent as it is", "set the header Content-Type: application/octet-stream")
        length = request.content_length
        if length is None:
            return failure(411, "the length of the file must be told before", "send the header Content-Length")
        if length > MOST_PIECE_BYTES:
            hint = "send it in pieces with Content-Range, as `emberwatch symbols upload` does"
            return failure(413, f"{length} bytes at once, at most {MOST_PIECE_BYTES} are taken", hint)
        piece = _piece(_token(token), length)
        received, result = desk.upload(piece, request.stream)
        body: Json = {"received": received, "size": piece.size_bytes, "done": result is not None}
        if result is not None:
            body |= {"build_id": result.build_id, "binaries": result.binaries, "known": result.is_known}
        return json_response(body)


def _token(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise QueryError("the name of an upload must be 16 to 64 hex digits in lower case")
    return text


def _piece(token: str, length: int) -> Piece:
    header = request.headers.get("Content-Range")
    if header is None:
        return Piece(token, 0, length)
    found = _RANGE.fullmatch(header)
    if not found:
        raise QueryError("Content-Range must be written bytes FIRST-LAST/SIZE")
    first, last, size = (int(number) for number in found.groups())
    if last - first + 1 != length or last >= size:
        raise QueryError(f"Content-Range tells of {last - first + 1} bytes of {size}, and {length} are sent")
    return Piece(token, first, size)


def _identity(body: bytes) -> str:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise QueryError("the request is no JSON", hint='send {"id": "..."}') from error
    identity = given.get("id") if isinstance(given, dict) else None
    if not isinstance(identity, str):
        raise QueryError("the request must be an object with the id of a binary", hint='send {"id": "..."}')
    return identity


def _binary_json(row: BinaryRow, facts: DeskFacts) -> Json:
    info, state = row.info, facts.state
    return {
        "id": facts.identity,
        "path": info.path.decode("utf-8", "backslashreplace"),
        "build_id": info.build_id.hex(),
        "build_id_kind": pb.BuildIdKind.Name(pb.BuildIdKind.ValueType(info.build_id_kind)).removeprefix("BUILD_ID_KIND_").lower(),
        "kind": info.kind,
        "state": state.state,
        "reason": state.reason,
        "quality": state.quality.name.lower() if state.state == NameState.NAMED else "",
        "why": facts.why,
        "remedy": _remedy_json(facts.remedy),
        "since_s": facts.record.first_seen_unix_s,
        "cpu_ns": row.value,
        "unnamed_ns": row.unnamed,
        "sources": [_attempt_json(attempt) for attempt in facts.record.attempts],
        "is_queued": facts.is_fetch_waiting,
    }


def _mark_json(row: MarkRow) -> Json:
    why, remedy = remedy_for_mark(row.mark, row.service)
    return {
        "service": row.service,
        "mark": mark_words(row.mark),
        "why": why,
        "remedy": _remedy_json(remedy),
        "unnamed_ns": row.value,
    }


def _remedy_json(remedy: Remedy) -> Mapping[str, str]:
    return {"words": remedy.words, "command": remedy.command}


def _attempt_json(attempt: Attempt) -> Json:
    return {
        "origin": attempt.origin,
        "place": attempt.place,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "quality": attempt.quality,
        "at_s": attempt.at_unix_s,
    }
