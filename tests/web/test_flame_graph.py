# SPDX-License-Identifier: Apache-2.0
"""The flame graph: drawn where it should be, zoomed, searched, walked by keys, read aloud, fast."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.upstreams import until
from tests.web.conftest import Open

PIXEL = """([x, y]) => {
  const canvas = document.querySelector(".flame-canvas");
  const ratio = devicePixelRatio;
  return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data.slice(0, 3)];
}"""
SURFACE = [255, 255, 255]
HUGE_MS = 120_000
"""The stand-in makes large answers in Python."""


def _selected(page: Page) -> str:
    return page.locator(".flame p[aria-live]").inner_text()


def test_frames_are_drawn_row_by_row_and_nothing_below_them(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    width = opened.page.evaluate("document.querySelector('.flame-canvas').clientWidth")
    root = opened.page.evaluate(PIXEL, [width - 4, 4])
    assert root == [236, 232, 225]
    thread, gap = opened.page.evaluate(PIXEL, [width - 4, 18 + 4]), opened.page.evaluate(PIXEL, [width - 4, 17.5])
    assert thread not in (SURFACE, root)
    assert gap == SURFACE
    # Native amber: more red than green than blue.
    assert thread[0] > thread[1] > thread[2]
    rows = opened.page.evaluate("document.querySelector('.flame-canvas').clientHeight / 18")
    assert opened.page.evaluate(PIXEL, [3, rows * 18 - 4]) == SURFACE


def test_a_click_zooms_and_asks_for_detail_and_history_goes_back(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.mouse.click(*opened.frame_at(0.3, 1))
    page.wait_for_url(re.compile(r"\?at=\d+$"))
    expect(page.locator(".graph-summary")).to_contain_text("% of 312 s")
    opened.wait_until_asked("flamegraph", "at=")
    # What is zoomed to fills the width in the row where it was.
    width = page.evaluate("document.querySelector('.flame-canvas').clientWidth")
    page.wait_for_function(f"() => ({PIXEL})([2, 21]).join() === ({PIXEL})([{width} - 4, 21]).join()")
    page.go_back()
    expect(page.locator(".graph-summary")).to_have_text("312 s of CPU")


def test_backspace_and_a_click_on_an_ancestor_go_back(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.mouse.click(*opened.frame_at(0.3, 2))
    page.wait_for_url(re.compile(r"at="))
    expect(page.locator(".graph-summary")).to_contain_text("% of")
    page.keyboard.press("Backspace")
    page.wait_for_url("**/service/checkout")
    expect(page.locator(".graph-summary")).to_have_text("312 s of CPU")
    page.wait_for_timeout(200)
    page.mouse.click(*opened.frame_at(0.3, 2))
    page.wait_for_url(re.compile(r"at="))
    expect(page.locator(".graph-summary")).to_contain_text("% of")
    page.mouse.click(*opened.frame_at(0.5, 0))
    page.wait_for_url("**/service/checkout")


def test_a_link_to_a_zoomed_frame_shows_it_under_its_ancestors(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    opened.page.mouse.click(*opened.frame_at(0.3, 2))
    opened.page.wait_for_url(re.compile(r"at="))
    opened.page.reload()
    opened.wait_for_graph()
    expect(opened.page.locator(".graph-summary")).to_contain_text("% of 312 s")
    opened.page.mouse.click(*opened.frame_at(0.5, 1))
    expect(opened.page.locator(".graph-summary")).to_contain_text("% of 312 s")


def test_search_says_the_servers_share_dims_the_rest_and_walks_the_matches(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    before = page.evaluate(PIXEL, [40, 18 + 4])
    page.keyboard.press("/")
    page.keyboard.type("json")
    expect(page.locator(".search-share")).to_have_text(re.compile(r"^[\d.]+ % matches · [\d.]+ s$"))
    assert "search=json" in page.url
    page.wait_for_function(f"() => ({PIXEL})([40, 22]).reduce((sum, part) => sum + part) > {sum(before)}")
    page.locator(".flame-canvas").focus()
    page.keyboard.press("n")
    first = _selected(page)
    page.keyboard.press("n")
    assert "json" in first
    assert "json" in _selected(page)
    assert _selected(page) != first
    page.keyboard.press("Shift+N")
    assert _selected(page) == first


def test_a_wrong_expression_is_told_and_the_picture_stays(open_page: Open) -> None:
    opened = open_page("/service/checkout?mode=regex")
    opened.wait_for_graph()
    opened.page.get_by_label("Search functions").fill("(")
    graph = opened.page.get_by_role("region", name="Flame graph")
    expect(graph.get_by_role("alert")).to_contain_text("missing closing )")
    expect(graph).to_contain_text("Escape the bracket")
    expect(opened.page.locator(".flame-canvas")).to_be_visible()


def test_keys_walk_zoom_turn_and_explain(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.locator(".flame-canvas").focus()
    page.keyboard.press("ArrowDown")
    assert _selected(page).startswith("all; total 312 s, 100 %")
    page.keyboard.press("ArrowDown")
    assert _selected(page).startswith("worker-N; total")
    page.keyboard.press("ArrowLeft")
    assert _selected(page).startswith("main; total")
    page.keyboard.press("ArrowUp")
    assert _selected(page).startswith("all;")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"at=\d+"))
    page.keyboard.press("Home")
    page.wait_for_url("**/service/checkout")
    page.keyboard.press("i")
    page.wait_for_url("**/service/checkout?invert=1")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("heaviest callee")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.wait_for_url(re.compile(r"shown=table"))


def test_the_tooltip_tells_everything_and_never_covers_its_frame(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    x, y = opened.frame_at(0.7, 2)
    opened.page.mouse.move(x, y)
    tooltip = opened.page.locator(".tooltip")
    expect(tooltip).to_contain_text("http::Server::serve")
    expect(tooltip).to_contain_text("src/checkout/2.cc:34")
    expect(tooltip).to_contain_text(re.compile(r"total.* s · [\d.]+ %"))
    box = tooltip.bounding_box()
    assert box is not None
    assert box["y"] >= y + 9 or box["y"] + box["height"] <= y - 9


def test_trimmed_frames_are_asked_for_when_they_are_clicked(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    trimmed = page.evaluate(
        """async () => {
          const { nodes } = await (await fetch("/api/v1/flamegraph?query=cpu%7Bservice%3D%22checkout%22%7D&width_px=930")).json();
          let best = -1;
          nodes.function.forEach((f, at) => { if (f === -1 && (best < 0 || nodes.total[at] > nodes.total[best])) best = at; });
          return [(nodes.start[best] + nodes.total[best] / 2) / nodes.total[0], nodes.depth[best], -nodes.id[best]];
        }"""
    )
    page.mouse.click(*opened.frame_at(trimmed[0], trimmed[1]))
    page.wait_for_url(re.compile(rf"at={trimmed[2]}$"))


def test_live_numbers_wait_while_a_frame_is_read(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.page.clock.install()
    opened.page.reload()
    opened.wait_for_graph()
    count = len(opened.asked_for("flamegraph"))
    opened.page.clock.run_for(11_000)
    until(lambda: opened.page.wait_for_timeout(50) or len(opened.asked_for("flamegraph")) == count + 1)
    opened.page.get_by_role("button", name="Live: on").click()
    opened.page.clock.run_for(25_000)
    opened.page.wait_for_timeout(200)
    assert len(opened.asked_for("flamegraph")) == count + 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_100_000_nodes_are_painted_one_and_all(open_page: Open, theme: str) -> None:
    """How fast is for the bench to say (paint)."""
    opened = open_page("/service/checkout?shown=graph", scenario="huge", theme=theme, width_px=2100)
    opened.page.wait_for_selector(".flame-canvas[data-boxes]", timeout=HUGE_MS)
    assert int(opened.page.locator(".flame-canvas").get_attribute("data-boxes") or 0) > 50_000
    width = opened.page.evaluate("document.querySelector('.flame-canvas').clientWidth")
    frames, gaps = ([opened.page.evaluate(PIXEL, [width * share, 18 * 20 + y]) for share in (0.1, 0.3, 0.5)] for y in (4, 17.5))
    assert len({tuple(gap) for gap in gaps}) == 1
    assert gaps[0] not in frames


def test_a_stack_of_30_000_frames_is_drawn_and_scrolls(open_page: Open) -> None:
    opened = open_page("/service/checkout", scenario="deep")
    opened.page.wait_for_selector(".flame-canvas[data-boxes]", timeout=HUGE_MS)
    opened.page.locator(".flame-scroll").evaluate("box => { box.scrollTop = 18 * 20000; }")
    opened.page.wait_for_function(f"() => ({PIXEL})([20, 40]).join() !== '{','.join(map(str, SURFACE))}'")


def test_reduced_motion_zooms_without_moving(open_page: Open) -> None:
    opened = open_page("/service/checkout", reduced_motion="reduce")
    opened.wait_for_graph()
    opened.page.mouse.click(*opened.frame_at(0.3, 1))
    opened.page.wait_for_url(re.compile(r"at="))
    expect(opened.page.locator(".graph-summary")).to_contain_text("% of 312 s")
