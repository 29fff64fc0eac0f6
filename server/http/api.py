# SPDX-License-Identifier: Apache-2.0
"""The routes of /api/v1 (docs/kinds.md tells those of event kinds): parameters in, columns of JSON out. All are GET and change nothing."""

from dataclasses import replace
from enum import StrEnum

from flask import Blueprint, Response, request

from server.fleet.latest import latest_reported
from server.http import serialise
from server.http.diff_routes import add_diff_routes
from server.http.failures import NotThere
from server.http.host_routes import add_host_routes
from server.http.kind_routes import add_kind_routes
from server.http.parameters import QUESTION, RANGE, Parameters
from server.http.reply import graph_response, json_response, text_response
from server.http.search_routes import add_search_routes
from server.http.services import AppServices
from server.http.sizes import DEFAULT_DEPTH, DEFAULT_WIDTH_PX, MOST_DEPTH, MOST_ROWS, MOST_WIDTH_PX
from server.interop.folded import export_lines
from server.profile.cut import View
from server.query.complaint import did_you_mean
from server.query.fleet_query import agents, fleet, label_names, label_values
from server.query.profile_query import FIXED_LABELS, Profile
from server.query.regex import search
from server.query.table_query import SortBy, table
from server.query.timeline_query import line
from server.query.timerange import SECOND_NS

SPARK_SLOTS = 60


class Format(StrEnum):
    """How a graph is answered."""

    JSON = "json"
    FOLDED = "folded"


def api_blueprint(services: AppServices) -> Blueprint:
    """Make the routes."""
    api = Blueprint("api", __name__, url_prefix="/api/v1")
    _graph_routes(api, services)
    add_diff_routes(api, services)
    add_kind_routes(api, services)
    add_search_routes(api, services)
    add_host_routes(api, services)
    _fleet_routes(api, services)
    return api


def _graph_routes(api: Blueprint, services: AppServices) -> None:
    query = services.query

    def parameters(*allowed: str) -> Parameters:
        return Parameters(request.args, allowed, query.now_unix_ns())

    @api.get("/flamegraph")
    def flamegraph() -> Response:
        given = parameters(*QUESTION, "width_px", "at", "search", "mode", "depth", "format")
        width_px = given.number("width_px", DEFAULT_WIDTH_PX, 1, MOST_WIDTH_PX)
        depth = given.number("depth", DEFAULT_DEPTH, 1, MOST_DEPTH)
        at, mode, answer_format = given.number("at", 0, 0, 2**53 - 1), given.mode(), given.choice("format", Format.JSON)
        text = given.text("search")
        if text:
            search(text, mode)  # a bad regex is told before any work
        is_folded = answer_format is Format.FOLDED
        profile = query.profile(replace(given.question(), is_counted=is_folded))
        if is_folded:
            return text_response("".join(f"{stack}\n" for stack in export_lines(profile.weighed)), "emberwatch.folded.txt")
        view = View(width_px=width_px, root=_node(profile, at), depth=depth)
        return graph_response(serialise.flamegraph_json(profile, view, text, mode))

    @api.get("/top")
    def top() -> Response:
        given = parameters(*QUESTION, "search", "mode", "limit", "sort")
        limit, sort = given.number("limit", 200, 1, MOST_ROWS), given.choice("sort", SortBy.SELF)
        text = given.text("search")
        matches = search(text, given.mode()) if text else None
        profile = query.profile(given.question())
        return json_response(serialise.table_json(profile, table(profile, sort, limit, matches)))

    @api.get("/series")
    def series() -> Response:
        given = parameters("query", *RANGE, "step", "column")
        return json_response(serialise.line_json(line(query, given.selector(), given.slots(), given.text("column"))))


def _fleet_routes(api: Blueprint, services: AppServices) -> None:
    query = services.query

    def parameters(*allowed: str) -> Parameters:
        return Parameters(request.args, allowed, query.now_unix_ns())

    @api.get("/services")
    def service_list() -> Response:
        found = fleet(query, parameters(*RANGE, "step").slots(SPARK_SLOTS))
        deploys = latest_reported(query.store.documents, {row.service: row.version for row in found.services})
        return json_response(serialise.fleet_json(found, deploys))

    @api.get("/labels")
    def labels() -> Response:
        return json_response({"labels": label_names(query, parameters(*RANGE).range())})

    @api.get("/labels/<name>/values")
    def values(name: str) -> Response:
        given = parameters("query", *RANGE)
        known = set(label_names(query, given.range())).union(FIXED_LABELS)
        if name not in known:
            raise NotThere(f"there is no label {name[:64]!r}", hint=did_you_mean(name[:64], known))
        found = label_values(query, name, given.selector(), given.range())
        return json_response({"values": [{"value": value, "cpu_ns": weight} for value, weight in found]})

    @api.get("/agents")
    def agent_list() -> Response:
        return json_response({"agents": [serialise.agent_json(row) for row in agents(query, parameters(*RANGE).range())]})

    @api.get("/now")
    def now() -> Response:
        parameters()
        return json_response({"now_s": query.now_unix_ns() / SECOND_NS})


def _node(profile: Profile, identity: int) -> int:
    node = profile.weighed.tree.find(identity)
    if node is None or (identity and not profile.weighed.total[node]):
        raise NotThere("the frame that was zoomed into is not in this range", hint="zoom out, or take a longer range")
    return node
