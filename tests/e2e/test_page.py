# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium before the real server, on the recorded trace: what a user does first, with nothing stood in."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from playwright.sync_api import Browser, Page, expect

from agent.ship.client import Client
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2
from server.http.packed import PACKED_TYPE
from tests.conftest import PATIENCE_MS
from tests.support.batches import push_of
from tests.support.servers import RunningServer, serving
from tests.web.test_flame_graph import PIXEL, SURFACE

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded.batch.zst"
WINDOW_NS = 10 * 10**9


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The recorded window twice: five minutes ago, and half a minute ago."""
    batch = pb.FoldedBatch.FromString(zstandard.ZstdDecompressor().decompress(RECORDED.read_bytes()))
    now_ns = time.time_ns() // WINDOW_NS * WINDOW_NS
    with serving(tmp_path_factory.mktemp("server")) as running:
        client = Client(running.grpc)
        for sequence, ago in ((1, 30), (2, 3)):
            answer = client.push(push_of(batch, sequence=sequence, start_unix_ns=now_ns - ago * WINDOW_NS))
            assert answer.status == collector_pb2.PUSH_STATUS_STORED
        client.close()
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    """A page whose console must stay silent to the end, which comes before that of the server: the page goes on asking it."""
    assert server.http
    complaints: list[str] = []
    opened = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light", timezone_id="UTC")
    opened.set_default_timeout(PATIENCE_MS)
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    opened.close()
    assert [text for text in complaints if "Canvas2D: Multiple readback" not in text] == []


def graph_of(page: Page, server: RunningServer, path: str) -> None:
    page.goto(f"http://{server.http}{path}")
    page.wait_for_selector(".flame-canvas[data-boxes]")


def frame_at(page: Page, share: float, row: int) -> tuple[float, float]:
    box = page.locator(".flame-canvas").bounding_box()
    assert box is not None
    return box["x"] + box["width"] * share, box["y"] + 18 * row + 9


def test_fleet_lists_what_was_recorded_and_leads_to_a_service(page: Page, server: RunningServer) -> None:
    page.goto(f"http://{server.http}/")
    expect(page.get_by_role("link", name="cc1", exact=True)).to_be_visible()
    page.get_by_role("link", name="cc1", exact=True).click()
    page.wait_for_url("**/service/cc1**")
    page.wait_for_selector(".flame-canvas[data-boxes]")


def test_graph_is_drawn_where_it_should_be_from_a_packed_answer(page: Page, server: RunningServer) -> None:
    with page.expect_response(re.compile("/api/v1/flamegraph")) as answered:
        graph_of(page, server, "/service/cc1")
    assert answered.value.headers["content-type"] == PACKED_TYPE
    root, first = page.evaluate(PIXEL, [40, 4]), page.evaluate(PIXEL, [40, 18 + 4])
    assert SURFACE not in (root, first)
    assert root != first
    assert int(page.locator(".flame-canvas").get_attribute("data-boxes") or 0) > 100


def test_click_zooms_search_states_the_share_and_history_goes_back(page: Page, server: RunningServer) -> None:
    graph_of(page, server, "/service/cc1")
    page.mouse.click(*frame_at(page, 0.5, 1))
    page.wait_for_url(re.compile(r"at=\d+"))
    expect(page.locator(".graph-summary")).to_contain_text("% of")
    page.go_back()
    page.wait_for_url(re.compile(r"/service/cc1$"))
    name = server.get("top", query='cpu{service="cc1"}', sort="self")["rows"][0]["name"]
    page.keyboard.press("/")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("search="))
    share = server.get("flamegraph", query='cpu{service="cc1"}', search=name)["search"]["share"]
    expect(page.locator("body")).to_contain_text(f"{share * 100:.1f} %")


def test_brush_changes_the_range_and_a_link_restores_the_view(page: Page, server: RunningServer) -> None:
    graph_of(page, server, "/service/cc1")
    whole = page.locator(".graph-summary").inner_text()
    box = page.locator(".timeline-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.85, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+&until=\d+"))
    expect(page.locator(".graph-summary")).not_to_have_text(whole)
    half, link = page.locator(".graph-summary").inner_text(), page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".graph-summary")).to_have_text(half)


def test_policy_lets_nothing_inline_run(browser: Browser, server: RunningServer) -> None:
    other = browser.new_page()
    answer = other.goto(f"http://{server.http}/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy
    other.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }")
    assert other.evaluate("() => window.ran === undefined")
    other.close()
