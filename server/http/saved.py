# SPDX-License-Identifier: Apache-2.0
"""The routes of saved views and shares. What is shared is asked of this very application, once, and kept."""

import re
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, current_app, request

from server.errors import LimitExceeded
from server.fleet.saved import (
    LEAST_EXPIRES_S,
    MOST_EXPIRES_S,
    Share,
    View,
    drop_view,
    make_share,
    opened,
    revoke,
    save_view,
    saved_views,
    shares,
)
from server.http.failures import NotThere
from server.http.parameters import Parameters
from server.http.posted import posted_number, posted_object, posted_text
from server.http.reply import json_response
from server.http.services import AppServices
from server.query.complaint import QueryError
from server.query.timerange import SECOND_NS
from server.store.documents import Documents

MOST_NAME_CHARACTERS = 120
MOST_ADDRESS_CHARACTERS = 4000
MOST_ANSWERS = 24
MOST_ANSWER_BYTES = 16 << 20
_ADDRESS = re.compile(r"/(?!/)[!-~]*")
_ANSWER = re.compile(r"/api/v1/(?!shared|shares|views)[a-z0-9/_-]+(\?[!-~]*)?")


def saved_blueprint(services: AppServices) -> Blueprint:
    """Make the routes."""
    api = Blueprint("saved", __name__, url_prefix="/api/v1")
    query = services.query

    def documents() -> Documents:
        Parameters(request.args, (), query.now_unix_ns())
        return query.store.documents

    @api.get("/views")
    def views() -> Response:
        return json_response({"views": [_view_json(view) for view in saved_views(documents())]})

    @api.post("/views")
    def save() -> Response:
        given = posted_object({"name", "address"}, 'send {"name": "checkout today", "address": "/service/checkout?from=-1d"}')
        name, address = posted_text(given, "name", MOST_NAME_CHARACTERS), _address(given)
        return json_response(_view_json(save_view(documents(), name, address, query.now_unix_ns())))

    @api.delete("/views/<view_id>")
    def unsave(view_id: str) -> Response:
        if not drop_view(documents(), view_id[:64]):
            raise NotThere("there is no such view")
        return json_response({"id": view_id})

    @api.get("/shares")
    def listed() -> Response:
        return json_response({"shares": [_share_json(share) for share in shares(documents(), query.now_unix_ns())]})

    @api.post("/shares")
    def share() -> Response:
        given = posted_object(
            {"title", "address", "answers", "expires_s"}, "send title, address, answers (addresses of the API), expires_s"
        )
        what = posted_text(given, "title", MOST_NAME_CHARACTERS), _address(given)
        expires_s = posted_number(given, "expires_s", MOST_EXPIRES_S)
        if expires_s < LEAST_EXPIRES_S:
            raise QueryError(f"expires_s must be a number from {LEAST_EXPIRES_S} to {MOST_EXPIRES_S}")
        answers, now = _answers(given), query.now_unix_ns()
        made, token = make_share(documents(), what, answers, (now, now + round(expires_s) * SECOND_NS))
        return json_response({**_share_json(made), "token": token})

    @api.delete("/shares/<share_id>")
    def end(share_id: str) -> Response:
        if not revoke(documents(), share_id[:64], query.now_unix_ns()):
            raise NotThere("there is no such share")
        return json_response({"id": share_id})

    @api.get("/shared/<token>")
    def shared(token: str) -> Response:
        body = opened(documents(), token[:200], query.now_unix_ns())
        if body is None:
            raise NotThere("this share has expired, or was taken back", hint="ask who shared it for a new link")
        return json_response({**body, "answers": dict(body["answers"])})

    return api


def _address(given: Mapping[str, object]) -> str:
    address = posted_text(given, "address", MOST_ADDRESS_CHARACTERS)
    if not _ADDRESS.fullmatch(address):
        raise QueryError("address must be a path in the page, for example /service/checkout?from=-1h")
    return address


def _answers(given: Mapping[str, object]) -> dict[str, Any]:
    """Ask what is to be kept; each must be a question of this API that has an answer."""
    asked = given.get("answers")
    if not isinstance(asked, list) or not 0 < len(asked) <= MOST_ANSWERS:
        raise QueryError(f"answers must be a list of 1 to {MOST_ANSWERS} addresses of the API")
    found: dict[str, Any] = {}
    size = 0
    for address in asked:
        if not isinstance(address, str) or len(address) > MOST_ADDRESS_CHARACTERS or not _ANSWER.fullmatch(address):
            raise QueryError("each of answers must be an address of the API, for example /api/v1/flamegraph?query=cpu%7B%7D&from=-1h")
        answer = current_app.test_client().get(address)
        size += len(answer.data)
        if size > MOST_ANSWER_BYTES:
            raise LimitExceeded(f"the view has more than {MOST_ANSWER_BYTES >> 20} MiB: share less of it")
        if answer.status_code != 200 or not answer.is_json:
            raise QueryError(f"{address[:100]} has no answer to share: {answer.status_code}")
        found[address] = answer.get_json()
    return found


def _view_json(view: View) -> dict[str, Any]:
    return {"id": view.view_id, "name": view.name, "address": view.address, "saved_s": view.saved_unix_ns / SECOND_NS}


def _share_json(share: Share) -> dict[str, Any]:
    return {
        "id": share.share_id,
        "title": share.title,
        "address": share.address,
        "created_s": share.created_unix_ns / SECOND_NS,
        "expires_s": share.expires_unix_ns / SECOND_NS,
    }
