# SPDX-License-Identifier: Apache-2.0
"""The route of the heat map: hosts x time of any selector, values a second."""

import numpy as np
from flask import Blueprint, Response, request

from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.query.host_query import host_map

MOST_HOSTS = 500
MOST_SLOTS = 180


def add_host_routes(api: Blueprint, services: AppServices) -> None:
    """Lay the route on the API."""
    query = services.query

    @api.get("/hostmap")
    def hostmap() -> Response:
        given = Parameters(request.args, ("query", *RANGE, "step", "column"), query.now_unix_ns())
        found = host_map(query, given.selector(), given.slots(MOST_SLOTS), given.text("column"))
        shown = found.rates()[:MOST_HOSTS] * (1.0 if found.column.unit == "ns" else 1e9)
        rows = [[None if np.isnan(value) else value for value in row] for row in shown.tolist()]
        return json_response(
            {
                "kind": found.kind,
                "column": found.column.name,
                "unit": "cores" if found.column.unit == "ns" else f"{found.column.unit}/s",
                "from_s": found.slots.range.from_s,
                "until_s": found.slots.range.until_s,
                "step_s": found.slots.step_ns / 1e9,
                "hosts": list(found.hosts[:MOST_HOSTS]),
                "hosts_total": len(found.hosts),
                "values": rows,
            }
        )
