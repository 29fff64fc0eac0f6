# SPDX-License-Identifier: Apache-2.0
"""The routes of deploys: what was deployed when, the report of each, and what people and pipelines say of them."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from server.fleet.deploy import Deploy, Rates, Side, Verdict
from server.fleet.deploys import deploy_by_id, deploys
from server.fleet.kept import keep_rates, kept_report
from server.fleet.report import missing_words
from server.http.events import add_event_routes
from server.http.failures import NotThere
from server.http.parameters import RANGE, Parameters
from server.http.posted import posted_number, posted_object, posted_text
from server.http.reply import json_response
from server.http.services import AppServices
from server.query.complaint import QueryError
from server.query.timerange import SECOND_NS
from server.store.protocol import DeployNote

MOST_DEPLOYS = 1000
MOST_HOSTS = 1000
MOST_NOTE_CHARACTERS = 2000
MOST_RATE = 1e9
_FIELDS = {"service", "version", "annotation", "requests_per_s", "requests_per_s_before"}


def deploys_blueprint(services: AppServices) -> Blueprint:
    """Make the routes."""
    api = Blueprint("deploys", __name__, url_prefix="/api/v1")
    query = services.query

    @api.get("/deploys")
    def listed() -> Response:
        given = Parameters(request.args, ("service", *RANGE), query.now_unix_ns())
        found = deploys(query.store, given.range(), given.text("service"))
        return json_response({"deploys": [_deploy_json(deploy) for deploy in found[:MOST_DEPLOYS]], "deploys_total": len(found)})

    @api.get("/deploys/<deploy_id>")
    def one(deploy_id: str) -> Response:
        Parameters(request.args, (), query.now_unix_ns())
        deploy = deploy_by_id(query.store, deploy_id[:64])
        if deploy is None:
            raise NotThere(f"there is no deploy {deploy_id[:64]!r}", hint="its address holds its id, as /api/v1/deploys lists it")
        report = kept_report(query.store.documents, deploy.deploy_id)
        hosts = sorted(deploy.first_by_host.items(), key=lambda item: (item[1], item[0]))
        answer = {
            "deploy": _deploy_json(deploy),
            "hosts": [{"host": host, "first_seen_s": at / SECOND_NS} for host, at in hosts[:MOST_HOSTS]],
            "report": None if report is None else dict(report),
            "missing": "" if report else missing_words(deploy) or "the report is made within a minute",
        }
        return json_response(answer)

    @api.post("/deploys")
    def noted() -> Response:
        given = posted_object(_FIELDS, 'send {"service": "checkout", "version": "2.4.1", "annotation": "..."}')
        text = given.get("annotation")
        note = DeployNote(posted_text(given, "service"), posted_text(given, "version"), "" if text is None else _annotation(given))
        rates = _rates(given)
        query.store.note_deploy(note, query.now_unix_ns())
        answer: dict[str, Any] = {"service": note.service, "version": note.version, "annotation": note.text or None}
        if rates is not None:
            keep_rates(query.store.documents, (note.service, note.version), rates, query.now_unix_ns())
            answer |= {"requests_per_s": rates.after, "requests_per_s_before": rates.before}
        return json_response(answer)

    add_event_routes(api, services)
    return api


def _annotation(given: Mapping[str, object]) -> str:
    return posted_text(given, "annotation", most=MOST_NOTE_CHARACTERS, least=0)


def _rates(given: Mapping[str, object]) -> Rates | None:
    """None when nothing is said of them. A rate before that is not told is as after: at one rate, CPU is compared at once."""
    if given.get("requests_per_s") is None:
        if given.get("requests_per_s_before") is not None:
            raise QueryError("requests_per_s_before says nothing without requests_per_s")
        return None
    after = posted_number(given, "requests_per_s", MOST_RATE)
    before = after if given.get("requests_per_s_before") is None else posted_number(given, "requests_per_s_before", MOST_RATE)
    return Rates(before, after)


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
        "is_return": deploy.is_return,
        "requests_per_s": {"before": deploy.rates.before, "after": deploy.rates.after} if deploy.rates.is_known else None,
        "verdict": None if deploy.verdict is None else _verdict_json(deploy.verdict),
        "compare": {
            "is_canary": comparison.is_canary,
            "a": _side_json(comparison.before),
            "b": _side_json(comparison.after),
        },
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "words": verdict.words,
        "change": verdict.change,
        "is_noise": verdict.is_noise,
        "functions": verdict.functions,
        "is_final": verdict.is_final,
        "made_s": verdict.made_unix_ns / SECOND_NS,
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {"version": side.version, "from_s": side.range.from_s, "until_s": side.range.until_s}
