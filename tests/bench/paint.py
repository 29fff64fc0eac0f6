# SPDX-License-Identifier: Apache-2.0
"""First paint of 100,000 and of a million nodes in Chromium: the page's own modules beside d3-flame-graph and speedscope; then redraws.

Trees as profiles are, of which our server sends what can be seen, and its cutting and writing are in our time; and one in which every
node is a pixel wide, of which all three get and paint all. Timed is from the request for the data until the picture is on screen:
transfer, parsing, layout, drawing; loading scripts is not in it. The first load of each is dropped (shaders, caches), but of a million
nodes there is one load a peer, which ends after LOAD_MS: a peer that has painted nothing by then counts with that.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from playwright.sync_api import Browser, Error, ViewportSize, sync_playwright

from server.profile.totals import weigh
from tests.bench.paint_data import paint_data
from tests.bench.paint_server import NODE_MODULES, PAGES, ROOT, SPEEDSCOPE, served
from tests.bench.report import MS, Line, against, bounded
from tests.bench.timing import BenchError, Effort
from tests.bench.trees import DrawnTree, draw_tree, wide_tree

PEERS = (SPEEDSCOPE / "index.html", NODE_MODULES / "d3" / "dist" / "d3.min.js", NODE_MODULES / "d3-flame-graph" / "dist")
NODES, ROWS = 100_000, 50
MOST_NODES = 1_000_000
VIEW: ViewportSize = {"width": 2000, "height": 1000}
LOAD_MS = 60_000
REDRAWS = 30
TOLD = """
({ count: painted.count, ms: painted.ms - performance.getEntriesByType("resource").find((one) => one.name.includes("/data/")).startTime })
"""
PATHS = {
    "ours": "/pages/ours.html",
    "d3-flame-graph": "/pages/d3.html",
    "speedscope": "/speedscope/index.html#profileURL=/data/speedscope.json",
}


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    missing = [str(path.relative_to(ROOT)) for path in PEERS if not path.exists()]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if missing or chromium is None:
        raise BenchError(f"missing: {', '.join([*missing, *([] if chromium else ['chromium'])])}; make bench installs them")
    profile = "first paint of a profile of {nodes:,} nodes, {boxes:,} boxes"
    rounds = max(2, effort.rounds // 2)
    scenes = (
        _Scene(profile, draw_tree(effort.rows(NODES)), rounds, (1 / 7, 1 / 18)),
        _Scene(
            "first paint of {nodes:,} nodes, all wide, {boxes:,} boxes",
            wide_tree(effort.rows(NODES) // ROWS, ROWS),
            rounds,
            (1 / 7, 1 / 18),
            is_whole=True,
        ),
        _Scene(profile, draw_tree(effort.rows(MOST_NODES)), 1, (1 / 15, 1 / 80), is_bounded=True),
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            for scene in scenes:
                yield from _lines(browser, scene)
        finally:
            browser.close()


@dataclass(frozen=True, slots=True)
class _Scene:
    """A tree to paint. `is_whole`: our page gets all of it, not what the server would send."""

    what: str
    drawn: DrawnTree
    rounds: int
    most: tuple[float, float]
    """Of d3's time, and of speedscope's."""
    is_whole: bool = False
    is_bounded: bool = False
    """Peers may give up."""


def _lines(browser: Browser, scene: _Scene) -> Iterator[Line]:
    taken: dict[str, list[float]] = {name: [] for name in PATHS}
    redraws: list[float] = []
    drawn, boxes = scene.drawn, 0
    data = paint_data(weigh(drawn.tree, drawn.nodes, drawn.weights), VIEW["width"], scene.is_whole)
    with served(data) as address:
        for turn in range(1 + scene.rounds):
            for name, path in PATHS.items():
                is_peer = name != "ours"
                if is_peer and scene.is_bounded and not turn:
                    continue
                try:
                    painted_ms, count, again = _load(browser, address + path, name)
                except BenchError:
                    if not (is_peer and scene.is_bounded):
                        raise
                    painted_ms, count, again = LOAD_MS, 0, []
                boxes = count if name == "ours" else boxes
                if turn:
                    taken[name].append(painted_ms / 1000)
                    redraws += again
    medians = {name: median(times) for name, times in taken.items()}
    what = scene.what.format(nodes=len(drawn.tree) - 1, boxes=boxes)
    yield against(what, medians["ours"], ("d3", medians["d3-flame-graph"]), MS, scene.most[0])
    yield against(what, medians["ours"], ("speedscope", medians["speedscope"]), MS, scene.most[1])
    yield bounded(f"redraw of {boxes:,} boxes, pixels included", median(redraws) / 1000, MS, 0.050)


def _load(browser: Browser, url: str, name: str) -> tuple[float, int, list[float]]:
    """Load a page anew; gives the time to paint, how much was drawn, and (ours) times of redraws, all in ms."""
    context = browser.new_context(viewport=VIEW)
    try:
        page = context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if name == "speedscope":
            page.add_init_script(path=PAGES / "speedscope.js")
        page.goto(url, timeout=LOAD_MS)
        try:
            page.wait_for_function("globalThis.painted", timeout=LOAD_MS)
        except Error as error:
            raise BenchError(f"{name} painted nothing: {'; '.join(complaints) or error}") from error
        painted = page.evaluate(TOLD)
        redraws = [float(page.evaluate(f"redraw({turn})")) for turn in range(REDRAWS)] if name == "ours" else []
        return float(painted["ms"]), int(painted["count"]), redraws
    finally:
        context.close()
