# SPDX-License-Identifier: Apache-2.0
"""The route of events: functions whose share of their service changed, after a deploy or without one."""

from typing import Any

from flask import Blueprint, Response, request

from server.fleet.events import Event, kept_events
from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.query.timerange import SECOND_NS

MOST_EVENTS = 1000


def add_event_routes(api: Blueprint, services: AppServices) -> None:
    """Lay the route on the API."""
    query = services.query

    @api.get("/events")
    def events() -> Response:
        given = Parameters(request.args, ("service", *RANGE), query.now_unix_ns())
        span, service = given.range(), given.text("service")
        found = [
            event
            for event in kept_events(query.store.documents, span.from_unix_ns)
            if event.at_unix_ns < span.until_unix_ns and service in {"", event.service}
        ]
        return json_response({"events": [event_json(event) for event in found[:MOST_EVENTS]], "events_total": len(found)})


def event_json(event: Event) -> dict[str, Any]:
    """One event as it is answered."""
    return {
        "id": event.event_id,
        "cause": event.cause,
        "words": event.words,
        "service": event.service,
        "function": event.function,
        "binary": event.binary,
        "at_s": event.at_unix_ns / SECOND_NS,
        "before": event.before,
        "after": event.after,
        "change": event.after - event.before,
        "low": event.low,
        "high": event.high,
        "explains": list(event.explains),
        "deploy_id": event.deploy_id or None,
        "version": event.version or None,
        "compare": {
            name: {"query": text, "from_s": span.from_s, "until_s": span.until_s} for name, (text, span) in (("a", event.a), ("b", event.b))
        },
    }
