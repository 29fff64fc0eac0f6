# SPDX-License-Identifier: Apache-2.0
"""A browser for the page's tests, and the page opened on the stand-in server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

from tests.conftest import PATIENCE_MS
from tests.support.page_server import PageServer

# What a scenario's refusals make the console say, and what reading pixels in a test does.
EXPECTED = re.compile(r"Failed to load resource: the server responded with a status of (400|404|503)|Canvas2D: Multiple readback")


@dataclass
class Opened:
    """A page on a stand-in server, and what its console said."""

    page: Page
    server: PageServer
    complaints: list[str] = field(default_factory=list)

    def wait_for_graph(self) -> None:
        """Until the flame graph has been painted."""
        self.page.wait_for_selector(".flame-canvas[data-boxes]")

    def frame_at(self, share: float, row: int) -> tuple[float, float]:
        """The point in the window of a row of the graph, `share` of its width from the left, when nothing above it is still to come."""
        self.page.wait_for_function("() => document.querySelector('[aria-busy=true]') === null")
        box = self.page.locator(".flame-canvas").bounding_box()
        assert box is not None
        return box["x"] + box["width"] * share, box["y"] + 18 * row + 9

    def asked_for(self, name: str) -> list[str]:
        """Requests to an endpoint of the API, oldest first."""
        return [each for each in self.server.requests if each.startswith(f"/api/v1/{name}")]

    def wait_until_asked(self, name: str, part: str) -> None:
        """Until the latest request to an endpoint holds `part`."""
        until_s = time.monotonic() + PATIENCE_MS / 1000
        while not (asked := self.asked_for(name)) or part not in asked[-1]:
            assert time.monotonic() < until_s, f"{name} was not asked for {part}: {asked[-1:]}"
            self.page.wait_for_timeout(20)


def asked_of(page: Page) -> dict[str, list[str]]:
    """Parameters of the address as the page itself has them: what Playwright knows of it comes a little later."""
    return parse_qs(str(page.evaluate("location.search"))[1:])


Open = Callable[..., Opened]
Theme = Literal["light", "dark"]


def _listen(opened: Opened) -> None:
    """Note what the console says, and that nothing ever opens a dialog."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            opened.complaints.append(message.text)

    def on_dialog(dialog: Dialog) -> None:
        opened.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    opened.page.on("console", on_console)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("dialog", on_dialog)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a path in a scenario. At the end the console must have said nothing but what a scenario's refusals make it say."""
    opened: list[Opened] = []
    servers: list[PageServer] = []

    def go(path: str = "/", scenario: str = "normal", width_px: int = 1440, theme: Theme = "light", **options: object) -> Opened:
        server = PageServer(scenario).__enter__()
        servers.append(server)
        context = browser.new_context(
            viewport={"width": width_px, "height": 900},
            color_scheme=theme,
            **{"timezone_id": "UTC"} | options,  # type: ignore[arg-type]
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        made = Opened(page, server)
        _listen(made)
        page.goto(server.address + path)
        opened.append(made)
        return made

    yield go
    for each in opened:
        each.page.context.close()
    for server in servers:
        server.__exit__()
    assert [text for each in opened for text in each.complaints if not EXPECTED.match(text)] == []
