# SPDX-License-Identifier: Apache-2.0
"""Routes that answer by object, class, time and bucket, for kinds whose rows are more than a stack."""

from flask import Blueprint, Response, request

from server.http.kind_json import columns_json, heatmap_json, object_table_json, peers_json
from server.http.parameters import RANGE, Parameters
from server.http.reply import json_response
from server.http.services import AppServices
from server.http.sizes import MOST_ROWS
from server.query.columns_query import columns_over_time
from server.query.grouping import By
from server.query.heatmap_query import heatmap
from server.query.object_query import functions_by_object, object_table
from server.query.peers_query import KIND as TCP
from server.query.peers_query import edges, names_of_objects


def add_kind_routes(api: Blueprint, services: AppServices) -> None:
    """Make the routes."""
    query = services.query

    def parameters(*allowed: str) -> Parameters:
        return Parameters(request.args, allowed, query.now_unix_ns())

    @api.get("/table")
    def table() -> Response:
        given = parameters("query", *RANGE, "by", "sort", "limit", "functions")
        by, cut = given.choice("by", By.OBJECT), (given.text("sort"), given.number("limit", 200, 1, MOST_ROWS))
        selector, span = given.selector(), given.range()
        found = object_table(query, selector, span, by, cut)
        functions = functions_by_object(query, selector, span) if given.flag("functions") else {}
        has_peers = selector.kind == TCP and by is By.OBJECT
        return json_response(object_table_json(found, functions, names_of_objects(query, selector, span) if has_peers else None))

    @api.get("/peers")
    def peers() -> Response:
        given = parameters("service", *RANGE)
        return json_response(peers_json(edges(query, given.range()), given.text("service")))

    @api.get("/heatmap")
    def heat() -> Response:
        given = parameters("query", *RANGE, "step", "buckets")
        return json_response(heatmap_json(heatmap(query, given.selector(), given.slots(), given.text("buckets"))))

    @api.get("/columns")
    def columns() -> Response:
        given = parameters("query", *RANGE, "step")
        return json_response(columns_json(columns_over_time(query, given.selector(), given.slots())))

    @api.get("/kinds")
    def kinds() -> Response:
        given = parameters("query", *RANGE)
        selector, span = given.selector(), given.range()
        matches = selector.test()
        found = {
            kind.name: any(matches(series.labels) for series in query.store.series(kind.name, span.from_unix_ns, span.until_unix_ns))
            for kind in query.store.kinds()
        }
        return json_response({"kinds": [{"kind": kind, "has_data": has_data} for kind, has_data in found.items()]})
