# SPDX-License-Identifier: Apache-2.0
"""A new version on one of two hosts, through the real ingest: the report makes itself, and is seen, saved and shared on the page."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from agent.ship.client import Client
from emberwatch.v1 import collector_pb2
from tests.conftest import PATIENCE_MS
from tests.support.batches import Row, batch_of, push_of
from tests.support.servers import RunningServer, serving

WINDOW_NS = 10 * 10**9
WINDOWS = 48
"""Eight minutes; the new version comes in the middle."""
NO_KIND = "400 (BAD REQUEST)"
"""The service's page asks for kinds that were never stored here."""
MEANS = {
    "1.0": {"parse": 300, "render": 250, "checksum": 300, "legacy": 150},
    "2.0": {"parse": 300, "render": 250, "checksum": 360},
}
"""Ticks of a window: checksum is a fifth slower, legacy is gone."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    end_ns = time.time_ns() // WINDOW_NS * WINDOW_NS - WINDOW_NS
    random = np.random.default_rng(7)
    with serving(tmp_path_factory.mktemp("server")) as running:
        client = Client(running.grpc)
        for at in range(WINDOWS):
            for host in (b"web-1", b"web-2"):
                version = "2.0" if host == b"web-2" and at >= WINDOWS // 2 else "1.0"
                rows: list[Row] = [
                    ("shop", "worker", [f"jit:{name}", "jit:serve", "jit:main"], int(random.poisson(mean)))
                    for name, mean in MEANS[version].items()
                ]
                start_ns = end_ns - (WINDOWS - at) * WINDOW_NS
                push = push_of(
                    batch_of(rows, version=version, host=host), sequence=at + 1, start_unix_ns=start_ns, agent_id=host.ljust(16, b".")
                )
                assert client.push(push).status == collector_pb2.PUSH_STATUS_STORED
        client.close()
        yield running


@pytest.fixture
def deploy(server: RunningServer) -> dict[str, Any]:
    """The deploy, once its report has made itself."""
    until_s = time.monotonic() + 90
    while True:
        (found,) = server.get("deploys", **{"from": "-1h"})["deploys"]
        if found["verdict"] or time.monotonic() > until_s:
            return dict(found)
        time.sleep(0.5)


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light", timezone_id="UTC")
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    opened.on(
        "console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") and NO_KIND not in said.text else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def test_the_report_names_both_changes_and_nothing_else(server: RunningServer, deploy: dict[str, Any]) -> None:
    answer = server.get(f"deploys/{deploy['id']}")
    assert {row["name"]: row["state"] for row in answer["report"]["rows"]} == {"checksum": "both", "legacy": "vanished"}
    assert deploy["verdict"]["words"].endswith("2 functions") and deploy["compare"]["is_canary"]
    assert [host["host"] for host in answer["hosts"]] == ["web-2"]
    events = server.get("events", **{"from": "-1h"})["events"]
    assert {(event["function"], event["version"], event["deploy_id"]) for event in events} == {
        ("checksum", "2.0", deploy["id"]),
        ("legacy", "2.0", deploy["id"]),
    }


def test_the_report_on_the_page(server: RunningServer, deploy: dict[str, Any], page: Page) -> None:
    page.goto(f"http://{server.http}/deploys")
    page.get_by_role("link", name=deploy["verdict"]["words"]).click()
    expect(page.locator(".report-table tbody tr")).to_have_count(2)
    expect(page.locator(".report-words")).to_have_text(deploy["verdict"]["words"])
    expect(page.locator(".saved-panel")).to_be_hidden()


def test_a_view_is_saved_and_opened_again(server: RunningServer, page: Page) -> None:
    page.goto(f"http://{server.http}/heat/shop?from=-1h")
    page.wait_for_selector(".heat-canvas[data-hosts='2']")
    page.get_by_role("button", name="Saved views and shares").click()
    page.get_by_label("Name of this view").fill("shop by host")
    page.get_by_label("Name of this view").press("Enter")
    expect(page.get_by_role("link", name="shop by host")).to_be_visible()
    page.goto(f"http://{server.http}/hosts")
    page.get_by_role("button", name="Saved views and shares").click()
    page.get_by_role("link", name="shop by host").click()
    page.wait_for_selector(".heat-canvas[data-hosts='2']")
    assert page.url.endswith("/heat/shop?from=-1h")
    page.get_by_role("button", name="Saved views and shares").click()
    page.get_by_role("button", name="Remove shop by host").click()
    expect(page.get_by_role("link", name="shop by host")).to_have_count(0)


def test_a_shared_view_shows_the_same_until_it_is_taken_back(server: RunningServer, page: Page, browser: Browser) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"http://{server.http}/service/shop?from=-1h")
    page.wait_for_selector(".flame-canvas[data-boxes]")
    page.get_by_role("button", name="Saved views and shares").click()
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#toast")).to_have_text("Link copied. It shows this picture until it expires.")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"http://{server.http}/shared/")
    asked: list[str] = []
    other = browser.new_page(viewport={"width": 900, "height": 900})
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    other.wait_for_selector(".flame-canvas[data-boxes]")
    expect(other.locator(".shared-words")).to_contain_text("read only")
    expect(other.get_by_role("button", name="checksum").first).to_be_visible()
    assert [url for url in asked if "/api/" in url] == [link.replace("/shared/", "/api/v1/shared/")]
    page.get_by_role("button", name="Take back shop").click()
    expect(page.get_by_role("button", name="Take back shop")).to_have_count(0)
    other.reload()
    expect(other.get_by_text("this share has expired, or was taken back")).to_be_visible()
    other.close()
