# SPDX-License-Identifier: Apache-2.0
"""Questions over a simulated fleet of 100 hosts, from the store on disk to the columns of the answer.

Two ranges of 7 days through the real ingest and compaction, in windows of an hour: a diff of the two, fleet search, odd hosts. Where the
machine would need more than three minutes for that the ranges are shorter, which the lines say.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from server.http.diff_json import Search, diff_json
from server.http.serialise import flamegraph_json
from server.profile.cut import View
from server.profile.diff import Shape
from server.query.diff_query import diff_answer
from server.query.odd_hosts import odd_hosts
from server.query.operators import frame_test
from server.query.profile_query import ProfileQuery, Question
from server.query.regex import SearchMode
from server.query.search_query import search_fleet
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.bench.report import MS, Line, against, bounded, told
from tests.bench.timing import Effort, interleaved
from tests.support.fleet import DAY_NS, START_UNIX_NS, Fleet, FleetShape, FleetStore, Release
from tests.support.fleet_program import FleetNamer, planted

HOSTS, DAYS = 100, 7
CORES = 0.02
"""Of each host: windows of an hour then have some hundred distinct stacks."""
DAY_START = START_UNIX_NS // DAY_NS * DAY_NS
SHAPE = FleetShape(services=("checkout", "search"), hosts=HOSTS, stacks=2000, cores=CORES, window_s=3600)
MOST_FILL_S = 170
VIEW = View(width_px=1200)


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    days = _days(effort)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        simulated, filled_s = _filled(Path(folder), days)
        query = ProfileQuery(simulated.store, FleetNamer(), lambda: simulated.now_unix_ns)
        a, b = (_question(days * which, days) for which in (0, 1))
        yield told(f"{HOSTS} hosts for {2 * days} days: ingest and blocks of all lengths", filled_s, MS)
        yield from _answers(query, (a, b), effort)
        simulated.store.close()


def _days(effort: Effort) -> int:
    """So many days a range as can be filled in time, told by a quarter of a day."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        simulated = FleetStore(Path(folder))
        Fleet(SHAPE).run(simulated.push, DAY_START, DAY_START + DAY_NS // 4)
        simulated.compact(DAY_NS)
        simulated.store.close()
    day_s = 4 * (time.monotonic() - began_s)
    return max(1, min(round(DAYS * effort.size), int(MOST_FILL_S / (2 * day_s))))


def _question(first_day: int, days: int) -> Question:
    start = DAY_START + first_day * DAY_NS
    return Question(parse_selector('cpu{service="checkout"}'), TimeRange(start, start + days * DAY_NS))


def _filled(folder: Path, days: int) -> tuple[FleetStore, float]:
    releases = [
        Release("checkout", "1.0"),
        Release("checkout", "1.1", DAY_START + days * DAY_NS, shares={planted("checkout"): 0.02}),
    ]
    simulated, began_s = FleetStore(folder), time.monotonic()
    Fleet(SHAPE, releases).run(simulated.push, DAY_START, DAY_START + 2 * days * DAY_NS)
    simulated.compact(DAY_NS)
    return simulated, time.monotonic() - began_s


def _answers(query: ProfileQuery, sides: tuple[Question, Question], effort: Effort) -> Iterator[Line]:
    a, b = sides
    both = TimeRange(a.range.from_unix_ns, b.range.until_unix_ns)
    week = f"{a.range.length_ns // DAY_NS} days of {HOSTS} hosts"
    taken = interleaved(
        {
            "graph": lambda: flamegraph_json(query.profile(a), VIEW, "", SearchMode.TEXT),
            "diff": lambda: diff_json(diff_answer(query, a, b), VIEW, Shape.B, Search()),
            "search": lambda: search_fleet(query, parse_selector("cpu{}"), both, frame_test("work_1")),
            "odd": lambda: odd_hosts(query, a.selector, a.range),
        },
        effort.rounds,
    )
    yield bounded(f"diff of two times {week}", taken["diff"], MS, 0.3)
    yield against("the same diff", taken["diff"], ("one graph", taken["graph"]), MS, 2.2)
    stacks = sum(query.store.dictionary(name).sizes[2] for name in SHAPE.services)
    yield bounded(f"fleet search over two times {week}, 2 services, {stacks:,} stacks", taken["search"], MS, 0.5)
    yield bounded(f"odd hosts of {week}", taken["odd"], MS, 1.0)
