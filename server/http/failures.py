# SPDX-License-Identifier: Apache-2.0
"""Errors as JSON: a sentence, a hint, a place, and the right status. No traceback ever leaves the server."""

import logging

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from server.errors import BadRequest, LimitExceeded, Overloaded, ServerError
from server.http.posted import NotJson
from server.http.reply import json_response
from server.query.complaint import QueryError

log = logging.getLogger(__name__)

_STATUS: dict[type[ServerError], int] = {BadRequest: 400, LimitExceeded: 413, Overloaded: 503}
_WORDS = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
    414: "the address is too long",
}


class NotThere(QueryError):
    """What is asked for by name does not exist."""


def failure(status: int, message: str, hint: str = "", position: int | None = None) -> Response:
    """Give the answer for something that went wrong."""
    response = json_response({"error": {"message": message, "hint": hint, "position": position}}, status)
    if status == 503:
        response.headers["Retry-After"] = "5"
    return response


def handle_failures(app: Flask) -> None:
    """Lay the handlers on the app."""

    @app.errorhandler(ServerError)
    def on_server_error(error: ServerError) -> Response:
        if isinstance(error, QueryError):
            return failure(404 if isinstance(error, NotThere) else 400, str(error), error.hint, error.position)
        if isinstance(error, NotJson):
            return failure(415, str(error), "set the header Content-Type: application/json")
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
        if status >= 500:
            log.error("question failed path=%r status=%d reason=%r", request.path, status, str(error))
        return failure(status, str(error))

    @app.errorhandler(HTTPException)
    def on_http_error(error: HTTPException) -> Response:
        status = error.code or 500
        return failure(status, _WORDS.get(status, error.name.lower()))

    @app.errorhandler(Exception)
    def on_bug(error: Exception) -> Response:
        log.error("question failed path=%r status=500", request.path, exc_info=error)
        return failure(500, "the server has a fault and could not answer; its log says more")
