# SPDX-License-Identifier: Apache-2.0
"""The heat map: one rectangle leads to a graph, two to a comparison, by pointer and by keyboard; each view is a link."""

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import Open, Opened, asked_of


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one share of the canvas to another."""
    box = page.locator(".heat-canvas").bounding_box()
    assert box is not None
    for at, act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(box["x"] + 148 + (box["width"] - 160) * at[0], box["y"] + 4 + 308 * at[1])
        act()


def heat(open_page: Open) -> Opened:
    opened = open_page("/heat/checkout")
    opened.page.wait_for_selector(".heat-canvas[data-hosts='14']")
    return opened


def given(page: Page) -> dict[str, list[str]]:
    return asked_of(page)


def test_one_rectangle_leads_to_a_graph_and_two_to_a_comparison(open_page: Open) -> None:
    page = heat(open_page).page
    drag(page, (0.1, 0.1), (0.3, 0.2))
    (box,) = given(page)["box"]
    assert re.fullmatch(r"\d+-\d+~web-2,web-3", box)
    page.get_by_role("link", name="Graph").click()
    page.wait_for_url("**/service/checkout?**")
    assert given(page)["host"] == ["web-2", "web-3"] and int(given(page)["until"][0]) > int(given(page)["from"][0])
    page.go_back()
    page.wait_for_selector(".heat-canvas[data-hosts='14']")
    drag(page, (0.5, 0.1), (0.9, 0.9))
    page.reload()
    page.get_by_role("link", name="Compare A with B").click()
    page.wait_for_url("**/compare?**")
    assert given(page)["a"] == ['cpu{service="checkout",host=~"web-2|web-3"}']
    assert int(given(page)["b_from"][0]) > int(given(page)["a_until"][0])


def test_everything_works_by_keyboard(open_page: Open) -> None:
    page = heat(open_page).page
    page.locator(".heat-canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".heat-said")).to_have_text(re.compile(r"^web-2 at .* cores?$"))
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    assert given(page)["box"][0].endswith("~web-2,web-3")
    page.keyboard.press("Escape")
    assert "box" not in given(page)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("c")
    page.wait_for_url("**/compare?**")


def test_narrow_and_empty(open_page: Open) -> None:
    page = open_page("/heat/checkout", width_px=375).page
    page.wait_for_selector(".heat-canvas[data-hosts='14']")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    expect(open_page("/heat/checkout", scenario="empty").page.get_by_text("No host has data of this service")).to_be_visible()
