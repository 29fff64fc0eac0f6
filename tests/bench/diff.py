# SPDX-License-Identifier: Apache-2.0
"""A diff of two ranges beside one graph of one of them, from blocks in memory to the columns of the answer; and the table of functions.

And beside FlameGraph's perl script on the same trees. The script is given the two counts of each stack ready made: what difffolded.pl does
before is not counted.
"""

import resource
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

from server.http.diff_json import DiffSort, Search, diff_json, diff_table_json
from server.http.serialise import flamegraph_json
from server.interop.folded import export_two_counts
from server.profile.cut import View
from server.profile.diff import Shape, compare
from server.query.diff_query import DiffAnswer, diff_answer
from server.query.profile_query import ProfileQuery, Question
from server.query.regex import SearchMode
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from server.store.protocol import Store
from tests.bench.report import MS, Line, against, told
from tests.bench.timing import BenchError, Effort, interleaved
from tests.bench.tree_store import PIECE_ROWS, TreeStore
from tests.server.query.fakes import FakeNamer

ROWS, NODES, HOSTS = 10_000_000, 1_000_000, 100
WIDTH_PX = 1200
FLAMEGRAPH = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
"""Where Debian has it."""
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
    yield _beside_perl(diff_answer(query, a, b), view, effort)


def _beside_perl(found: DiffAnswer, view: View, effort: Effort) -> Line:
    """Both from stacks that are added up: ours with their values by replicate, for the intervals, the script with two counts each."""
    diff = found.diff
    lines = list(export_two_counts(diff.a, diff.b))
    ours = interleaved(
        {"ours": lambda: diff_json(replace(found, diff=compare(diff.tree, diff.side_a, diff.side_b)), view, Shape.B, NOTHING_SEARCHED)},
        effort.rounds,
    )["ours"]
    return against(f"diff of {len(lines):,} stacks, from trees to what is drawn", ours, ("flamegraph.pl", _perl_s(lines)), MS, 1 / 50)


def _perl_s(lines: list[str]) -> float:
    """CPU seconds of flamegraph.pl for folded stacks with two counts."""
    if not FLAMEGRAPH.exists():
        raise BenchError("flamegraph.pl is not installed (apt-get install libdevel-nytprof-perl)")
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    began_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(["perl", str(FLAMEGRAPH)], input=text, capture_output=True, check=False)
    if done.returncode or b"</svg>" not in done.stdout:
        raise BenchError(f"flamegraph.pl failed: {done.stderr.decode(errors='replace')[:200]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began_s
