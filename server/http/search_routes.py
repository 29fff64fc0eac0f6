# SPDX-License-Identifier: Apache-2.0
"""The route of the fleet search: a text or regex in, services and functions out."""

from typing import Any

from flask import Blueprint, Response, request

from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.http.sizes import MOST_ROWS
from server.query.complaint import QueryError
from server.query.operators import frame_test
from server.query.quality import share
from server.query.regex import SearchMode, search
from server.query.search_query import Found, FoundFunction, FoundService, search_fleet

FUNCTIONS_SHOWN = 5
"""Of each service."""


def add_search_routes(api: Blueprint, services: AppServices) -> None:
    """Lay the route on the API."""
    query = services.query

    @api.get("/search")
    def found() -> Response:
        given = Parameters(request.args, ("query", *RANGE, "search", "mode", "limit"), query.now_unix_ns())
        text, mode, limit = given.text("search"), given.mode(), given.number("limit", 200, 1, MOST_ROWS)
        if not text:
            raise QueryError("there is nothing to search", hint="write search=NAME, search==NAME for this name alone, or mode=regex")
        test = search(text, mode) if mode is SearchMode.REGEX else frame_test(text)
        return json_response(_found_json(search_fleet(query, given.selector(), given.range(), test), text, limit))


def _found_json(found: Found, text: str, limit: int) -> dict[str, Any]:
    slots = found.slots
    total = sum(service.total for service in found.services)
    return {
        "search": text,
        "kind": found.kind,
        "column": found.column.name,
        "unit": found.column.unit,
        "from_s": found.range.from_s,
        "until_s": found.range.until_s,
        "step_s": slots.step_s,
        "times_s": [slots.first_s + slots.step_s * at for at in range(slots.count)],
        "fleet_total": found.fleet_total,
        "total": total,
        "share": share(total, found.fleet_total),
        "services": [_service_json(service, found.fleet_total) for service in found.services[:limit]],
        "services_total": len(found.services),
        "functions": [_function_json(function) for function in found.functions[:limit]],
        "functions_total": len(found.functions),
    }


def _service_json(service: FoundService, fleet_total: int) -> dict[str, Any]:
    return {
        "service": service.service,
        "self": service.own,
        "total": service.total,
        "service_total": service.service_total,
        "share": service.share,
        "fleet_share": share(service.total, fleet_total),
        "hosts": service.hosts,
        "trend": service.trend,
        "functions": [_function_json(function) for function in service.functions[:FUNCTIONS_SHOWN]],
        "functions_total": len(service.functions),
    }


def _function_json(function: FoundFunction) -> dict[str, Any]:
    return {
        "name": function.name,
        "binary": function.binary,
        "code": function.code,
        "self": function.own,
        "total": function.total,
        "services": function.services,
    }
