# SPDX-License-Identifier: Apache-2.0
"""The route of odd hosts: one service in, its hosts by their distance from the median profile out."""

from typing import Any

from flask import Blueprint, Response, request

from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.http.sizes import MOST_ROWS
from server.query.odd_hosts import HostDistance, odd_hosts


def add_host_routes(api: Blueprint, services: AppServices) -> None:
    """Lay the route on the API."""
    query = services.query

    @api.get("/odd_hosts")
    def odd() -> Response:
        given = Parameters(request.args, ("query", *RANGE, "limit"), query.now_unix_ns())
        limit = given.number("limit", 200, 1, MOST_ROWS)
        found = odd_hosts(query, given.selector(), given.range())
        return json_response(
            {
                "service": found.service,
                "column": found.column.name,
                "unit": found.column.unit,
                "from_s": found.range.from_s,
                "until_s": found.range.until_s,
                "is_comparable": found.is_comparable,
                "hosts": [_host_json(host) for host in found.hosts[:limit]],
                "hosts_total": len(found.hosts),
                "odd_total": sum(host.is_odd for host in found.hosts),
            }
        )


def _host_json(host: HostDistance) -> dict[str, Any]:
    return {
        "host": host.host,
        "total": host.value,
        "distance": host.distance,
        "expected": host.expected,
        "is_odd": int(host.is_odd),
        "functions": [
            {"name": one.name, "binary": one.binary, "code": one.code, "share": one.share, "median": one.median} for one in host.functions
        ],
    }
