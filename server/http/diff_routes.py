# SPDX-License-Identifier: Apache-2.0
"""The routes of diffs: two sides in, each a selector and a range; the graph, the table, or folded stacks with two counts out.

A side without a range of its own has the one of `from` and `until`; one without a selector has that of `query`.
"""

from enum import StrEnum

from flask import Blueprint, Response, request

from server.http.diff_json import DiffSort, Search, diff_json, diff_table_json
from server.http.failures import NotThere
from server.http.parameters import OPERATORS, Parameters
from server.http.reply import graph_response, json_response, text_response
from server.http.services import AppServices
from server.http.sizes import DEFAULT_DEPTH, DEFAULT_WIDTH_PX, MOST_DEPTH, MOST_ROWS, MOST_WIDTH_PX
from server.interop.folded import export_two_counts
from server.profile.cut import View
from server.profile.diff import Shape
from server.query.diff_query import DiffAnswer, diff_answer, together
from server.query.regex import search

SIDES = (
    "together",
    "a",
    "a_from",
    "a_until",
    "a_rate",
    "b",
    "b_from",
    "b_until",
    "b_rate",
    "query",
    "from",
    "until",
    "column",
    "group",
    *OPERATORS,
)


class DiffFormat(StrEnum):
    """How a diff is answered."""

    JSON = "json"
    FOLDED = "folded"
    """Stacks with two counts, as difffolded.pl writes them."""


def add_diff_routes(api: Blueprint, services: AppServices) -> None:
    """Lay the routes on the API."""
    query = services.query

    def parameters(*allowed: str) -> Parameters:
        return Parameters(request.args, (*SIDES, *allowed), query.now_unix_ns())

    def answer(given: Parameters, is_counted: bool = False) -> DiffAnswer:
        sides = given.side("a", is_counted), given.side("b", is_counted)
        return diff_answer(query, *(together(query, *sides) if given.flag("together") else sides))

    @api.get("/diff")
    def diff() -> Response:
        given = parameters("width_px", "at", "search", "mode", "depth", "shape", "format")
        width_px = given.number("width_px", DEFAULT_WIDTH_PX, 1, MOST_WIDTH_PX)
        depth = given.number("depth", DEFAULT_DEPTH, 1, MOST_DEPTH)
        at, shape, answer_format = (
            given.number("at", 0, 0, 2**53 - 1),
            given.choice("shape", Shape.B),
            given.choice("format", DiffFormat.JSON),
        )
        wanted = _search(given)
        is_folded = answer_format is DiffFormat.FOLDED
        found = answer(given, is_folded)
        if is_folded:
            lines = export_two_counts(found.diff.a, found.diff.b)
            return text_response("".join(f"{line}\n" for line in lines), "emberwatch.diff.folded.txt")
        return graph_response(diff_json(found, View(width_px, _node(found, at), depth), shape, wanted))

    @api.get("/diff/top")
    def diff_top() -> Response:
        given = parameters("search", "mode", "limit", "sort")
        limit, sort = given.number("limit", 200, 1, MOST_ROWS), given.choice("sort", DiffSort.CHANGE)
        wanted = _search(given)
        return json_response(diff_table_json(answer(given), sort, limit, wanted))


def _search(given: Parameters) -> Search:
    """A bad regex is told before any work."""
    wanted = Search(given.text("search"), given.mode())
    if wanted.text:
        search(wanted.text, wanted.mode)
    return wanted


def _node(answer: DiffAnswer, identity: int) -> int:
    diff = answer.diff
    node = diff.tree.find(identity)
    if node is None or (identity and not diff.a.total[node] and not diff.b.total[node]):
        raise NotThere("the frame that was zoomed into is on neither side", hint="zoom out, or take longer ranges")
    return node
