# SPDX-License-Identifier: Apache-2.0
"""The route of deploys: what was deployed when, and what is said of it. The one thing of the API that can be written."""

import json
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from server.fleet.deploys import Deploy, Side, deploys
from server.http.failures import failure
from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.query.complaint import QueryError
from server.query.timerange import SECOND_NS
from server.store.protocol import DeployNote

MOST_DEPLOYS = 1000
MOST_BODY_BYTES = 16_384
MOST_LABEL_CHARACTERS = 512
MOST_NOTE_CHARACTERS = 2000
_FIELDS = {"service", "version", "annotation"}


def deploys_blueprint(services: AppServices) -> Blueprint:
    """Make the routes."""
    api = Blueprint("deploys", __name__, url_prefix="/api/v1")
    query = services.query

    @api.get("/deploys")
    def listed() -> Response:
        given = Parameters(request.args, ("service", *RANGE), query.now_unix_ns())
        found = deploys(query.store, given.range(), given.text("service"))
        return json_response({"deploys": [_deploy_json(deploy) for deploy in found[:MOST_DEPLOYS]], "deploys_total": len(found)})

    @api.post("/deploys")
    def noted() -> Response:
        # Only this type: a form on a foreign site cannot send it without asking first, and nobody answers that question here.
        if request.mimetype != "application/json":
            return failure(415, "a note on a deploy is sent as JSON", "set the header Content-Type: application/json")
        if (request.content_length or 0) > MOST_BODY_BYTES:
            return failure(413, f"a note on a deploy has at most {MOST_BODY_BYTES} bytes")
        note = _note(request.stream.read(MOST_BODY_BYTES))
        query.store.note_deploy(note, query.now_unix_ns())
        return json_response({"service": note.service, "version": note.version, "annotation": note.text or None})

    return api


def _note(body: bytes) -> DeployNote:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise QueryError("the note is no JSON", hint='send {"service": "checkout", "version": "2.4.1", "annotation": "..."}') from error
    if not isinstance(given, dict) or not given.keys() <= _FIELDS:
        raise QueryError("the note must be an object with service, version and annotation, and nothing else")
    text = given.get("annotation")
    return DeployNote(_text(given, "service"), _text(given, "version"), "" if text is None else _text(given, "annotation"))


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    is_note = name == "annotation"
    most = MOST_NOTE_CHARACTERS if is_note else MOST_LABEL_CHARACTERS
    if not isinstance(value, str) or (not value and not is_note) or len(value) > most:
        raise QueryError(f"{name} must be a text of {0 if is_note else 1} to {most} characters")
    if "\0" in value or value.encode("utf-8", "replace").decode() != value:
        raise QueryError(f"{name} holds a character that cannot be stored")
    return value


def _deploy_json(deploy: Deploy) -> dict[str, Any]:
    comparison = deploy.comparison
    return {
        "id": deploy.deploy_id,
        "service": deploy.service,
        "version": deploy.version,
        "replaced": deploy.replaced,
        "first_seen_s": deploy.first_seen_unix_ns / SECOND_NS,
        "hosts_done": deploy.hosts_done,
        "hosts_total": deploy.hosts_total,
        "annotation": deploy.annotation,
        "compare": {
            "is_canary": comparison.is_canary,
            "a": _side_json(comparison.before),
            "b": _side_json(comparison.after),
        },
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {"version": side.version, "from_s": side.range.from_s, "until_s": side.range.until_s}
