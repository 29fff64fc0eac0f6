# SPDX-License-Identifier: Apache-2.0
"""First paint of 100,000 and of a million nodes in Chromium: the page's own modules beside d3-flame-graph and speedscope; then zooming.

Trees as profiles are, of which our server sends what can be seen, and its cutting and writing are in our time; and one in which every
node is a pixel wide, of which all three get and paint all. A million nodes never reach a browser of ours, whatever is asked for: of
those that lie in the server some 10,000 are half a pixel wide and are sent. The peers have no server and read all.

Timed is from the request for the data until the second frame after drawing began, for all three: transfer, parsing, layout, drawing.
Loading scripts is not in it, and nothing is put into the page by the bench meanwhile (Playwright's waiting would be). The first load of
each is dropped (shaders, caches), but of a million nodes there is one load a peer, which ends after LOAD_MS: a peer that has painted
nothing by then counts with that.

Frames are times between animation frames while the graph zooms in and out as a click does it; 60 a second are 16.7 ms each.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

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
ZOOMS = 20
FRAME_S = 0.017
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
        _Scene(profile, draw_tree(effort.rows(MOST_NODES)), rounds, (1 / 15, 1 / 80), is_bounded=True),
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
    """Peers may give up, and are loaded once."""


def _lines(browser: Browser, scene: _Scene) -> Iterator[Line]:
    taken: dict[str, list[float]] = {name: [] for name in PATHS}
    redraws: list[float] = []
    frames: list[float] = []
    drawn, boxes = scene.drawn, 0
    data = paint_data(weigh(drawn.tree, drawn.nodes, drawn.weights), VIEW["width"], scene.is_whole)
    with served(data) as address:
        for turn in range(1 + scene.rounds):
            for name, path in PATHS.items():
                is_peer = name != "ours"
                if is_peer and scene.is_bounded and turn != 1:
                    continue
                try:
                    loaded = _load(browser, address + path, name)
                except BenchError:
                    if not (is_peer and scene.is_bounded):
                        raise
                    loaded = _Loaded(LOAD_MS)
                boxes = boxes if is_peer else loaded.count
                if turn:
                    taken[name].append(loaded.painted_ms / 1000)
                    redraws += loaded.redraws_ms
                    frames += loaded.frames_ms
    medians = {name: median(times) for name, times in taken.items()}
    what = scene.what.format(nodes=len(drawn.tree) - 1, boxes=boxes)
    yield against(what, medians["ours"], ("d3", medians["d3-flame-graph"]), MS, scene.most[0])
    yield against(what, medians["ours"], ("speedscope", medians["speedscope"]), MS, scene.most[1])
    yield bounded(f"redraw of {boxes:,} boxes, pixels included", median(redraws) / 1000, MS, 0.050)
    yield bounded(f"frame while zooming, {boxes:,} boxes, median of {len(frames):,}", median(frames) / 1000, MS, FRAME_S)
    yield bounded("the same, 95th centile", quantiles(frames, n=20)[-1] / 1000, MS, FRAME_S)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The time to paint, how much was drawn, and of ours: times of redraws, and of frames while zooming."""

    painted_ms: float
    count: int = 0
    redraws_ms: Sequence[float] = ()
    frames_ms: Sequence[float] = ()


def _load(browser: Browser, url: str, name: str) -> _Loaded:
    """Load a page anew."""
    context = browser.new_context(viewport=VIEW)
    try:
        page = context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if name == "speedscope":
            page.add_init_script(path=PAGES / "speedscope.js")
        try:
            with page.expect_console_message(lambda message: message.text == "painted", timeout=LOAD_MS):
                page.goto(url, timeout=LOAD_MS)
        except Error as error:
            raise BenchError(f"{name} painted nothing: {'; '.join(complaints) or error}") from error
        painted = page.evaluate(TOLD)
        if name != "ours":
            return _Loaded(float(painted["ms"]), int(painted["count"]))
        frames = page.evaluate(f"zoom({ZOOMS})")
        redraws = [float(page.evaluate(f"redraw({turn})")) for turn in range(REDRAWS)]
        return _Loaded(float(painted["ms"]), int(painted["count"]), redraws, frames)
    finally:
        context.close()
