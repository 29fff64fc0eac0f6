# SPDX-License-Identifier: Apache-2.0
"""From a new version on one of two hosts to what it changed, before the real server: nobody chooses a range or a function."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from agent.ship.client import Client
from emberwatch.v1 import collector_pb2
from tests.conftest import PATIENCE_MS
from tests.support.batches import Row, batch_of, push_of
from tests.support.servers import RunningServer, serving

WINDOW_NS = 10 * 10**9
WINDOWS = 60
"""Ten minutes; the new version comes in the middle."""


def rows_of(version: str, at: int) -> list[Row]:
    """Ticks of one window: version 2 parses more, has dropped `legacy` and calls `quote` instead; the rest scatters a little."""
    scatter = (at * 7) % 5
    stacks = {"1": {"parse": 200, "render": 500, "legacy": 100}, "2": {"parse": 300, "render": 500, "quote": 61}}[version]
    return [("shop", "worker", [f"jit:{name}", "jit:main"], count + scatter) for name, count in stacks.items()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Two hosts on version 1; then web-2 on version 2."""
    end_ns = time.time_ns() // WINDOW_NS * WINDOW_NS - WINDOW_NS
    with serving(tmp_path_factory.mktemp("server")) as running:
        client = Client(running.grpc)
        for at in range(WINDOWS):
            for host in (b"web-1", b"web-2"):
                version = "2" if host == b"web-2" and at >= WINDOWS // 2 else "1"
                batch = batch_of(rows_of(version, at), version=version, host=host)
                start_ns = end_ns - (WINDOWS - at) * WINDOW_NS
                push = push_of(batch, sequence=at + 1, start_unix_ns=start_ns, agent_id=host.ljust(16, b"."))
                assert client.push(push).status == collector_pb2.PUSH_STATUS_STORED
        client.close()
        yield running


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    """A page whose console must stay silent to the end. It is closed before its server is, which it would go on asking."""
    complaints: list[str] = []
    opened = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light", timezone_id="UTC")
    opened.set_default_timeout(PATIENCE_MS)
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    opened.close()
    assert complaints == []


def test_a_canary_names_what_changed_and_nothing_else(page: Page, server: RunningServer) -> None:
    page.goto(f"http://{server.http}/deploys")
    expect(page.locator("tbody tr")).to_contain_text(re.compile(r"shop1 → 2.*1 of 2"))
    page.get_by_role("link", name="Canary").click()
    page.wait_for_selector(".flame-canvas[data-boxes]")
    rows = page.locator(".changed-table tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".changed-note")).to_contain_text("1 more is explained by those")
    # 100 and 200 of 800 ticks; 61 and 300 of 861; render does the same work, and has less of a larger whole.
    told = {row.locator(".function-name").inner_text(): row.inner_text() for row in rows.all()}
    assert set(told) == {"legacy", "parse", "quote"}
    assert "gone in B" in told["legacy"]
    assert "new in B" in told["quote"]
    assert re.search(r"25\.1 %\s+34\.8 %\s+\+9\.8", told["parse"])
    expect(page.locator(".verdict")).to_have_text("4 of 4 changed frames are beyond noise at 95 %")
    page.get_by_role("tab", name="Union").click()
    expect(page.locator(".graph .legend")).to_contain_text("gone in B")
    page.get_by_label("Search functions").fill("legacy")
    expect(page.locator(".search-share")).to_have_text(re.compile(r"^[\d.]+ % of the picture matches$"))
    page.get_by_role("button", name="Swap").click()
    expect(rows.first.locator(".change-number")).to_have_text(re.compile(r"^\+12\.\d$"))


def test_a_service_is_compared_with_the_time_before(page: Page, server: RunningServer) -> None:
    page.goto(f"http://{server.http}/service/shop?from=-8m")
    page.wait_for_selector(".flame-canvas[data-boxes]")
    expect(page.get_by_role("link", name=re.compile("^2 replaced 1"))).to_have_count(1)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url("**/compare?**")
    page.wait_for_selector(".flame-canvas[data-boxes]")
    expect(page.locator(".side-words").first).to_have_text(re.compile("of CPU, 2 hosts$"))


def test_an_empty_side_is_said_by_the_server(page: Page, server: RunningServer) -> None:
    page.goto(f"http://{server.http}/compare?a=cpu{{}}&a_from=-30d&a_until=-29d&b=cpu{{}}&b_from=-15m&b_until=now")
    expect(page.locator(".compare-notes li").first).to_have_text("side A is empty")
    expect(page.get_by_role("region", name="Side A").locator(".side-words")).to_have_text("no samples in this range")


def test_a_note_of_a_pipeline_stands_in_the_list(page: Page, server: RunningServer) -> None:
    body = json.dumps({"service": "shop", "version": "2", "annotation": "the new parser"}).encode()
    asked = urllib.request.Request(f"http://{server.http}/api/v1/deploys", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status == 200
    page.goto(f"http://{server.http}/deploys")
    expect(page.locator(".deploy-note")).to_have_text("the new parser")
