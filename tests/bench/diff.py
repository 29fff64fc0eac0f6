# SPDX-License-Identifier: Apache-2.0
"""A diff of two ranges beside one graph of one of them, from blocks in memory to the columns of the answer; and the table of functions."""

from collections.abc import Iterator
from typing import cast

from server.http.diff_json import DiffSort, Search, diff_json, diff_table_json
from server.http.serialise import flamegraph_json
from server.profile.cut import View
from server.profile.diff import Shape
from server.query.diff_query import diff_answer
from server.query.profile_query import ProfileQuery, Question
from server.query.regex import SearchMode
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from server.store.protocol import Store
from tests.bench.report import MS, Line, against, told
from tests.bench.timing import Effort, interleaved
from tests.bench.tree_store import PIECE_ROWS, TreeStore
from tests.server.query.fakes import FakeNamer

ROWS, NODES, HOSTS = 10_000_000, 1_000_000, 100
WIDTH_PX = 1200
NOTHING_SEARCHED = Search()


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    minutes = max(1, effort.rows(ROWS) // PIECE_ROWS)
    store = TreeStore(effort.rows(NODES), minutes, HOSTS)
    query = ProfileQuery(cast(Store, store), FakeNamer(), lambda: store.span(1)[1])
    a, b = (Question(parse_selector("cpu{}"), TimeRange(*store.span(which))) for which in (0, 1))
    view = View(width_px=WIDTH_PX)
    taken = interleaved(
        {
            "graph": lambda: flamegraph_json(query.profile(a), view, "", SearchMode.TEXT),
            "diff": lambda: diff_json(diff_answer(query, a, b), view, Shape.B, NOTHING_SEARCHED),
            "table": lambda: diff_table_json(diff_answer(query, a, b), DiffSort.CHANGE, 200, NOTHING_SEARCHED),
        },
        effort.rounds,
    )
    size = f"2 x {minutes * PIECE_ROWS / 1e6:g} M rows, {effort.rows(NODES) / 1e6:g} M nodes, {HOSTS} hosts"
    yield against(f"diff of {size}", taken["diff"], ("one graph", taken["graph"]), MS, 2.2)
    yield told("table of changed functions of the same", taken["table"], MS)
