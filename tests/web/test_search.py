# SPDX-License-Identifier: Apache-2.0
"""Fleet search, frame operators and odd hosts on the page: every choice is in the address and asked of the server."""

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import Open, asked_of


def asked(page: Page) -> dict[str, list[str]]:
    return asked_of(page)


def test_a_function_is_found_in_the_fleet_and_opens_the_graph_focused_there(open_page: Open) -> None:
    page = open_page("/").page
    page.get_by_role("searchbox", name="Find a function in the fleet").fill("json::parse")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/search\?.*search=json"))
    rows = page.locator("section[aria-label=Found] tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("checkout")
    expect(rows.first).to_contain_text("and 1 more")
    rows.first.get_by_role("link").click()
    page.wait_for_url(re.compile(r"/service/checkout\?"))
    assert asked(page)["focus"] == ["json::parse"]
    expect(page.locator(".operator-chip")).to_have_text("only with …json::parse…")


def test_nothing_found_is_said_and_an_empty_search_asks_for_a_name(open_page: Open) -> None:
    page = open_page("/search?search=absent").page
    expect(page.get_by_text("No function that matches “absent” ran in this range.")).to_be_visible()
    page.get_by_role("searchbox", name="Find a function in the fleet").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Which services spend time in a function?")).to_be_visible()


def test_operators_are_in_the_address_and_asked_of_the_server(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    bar = page.get_by_role("group", name="Frame operators")
    bar.get_by_label("Frames by", exact=True).select_option("package")
    bar.get_by_label("Group by", exact=True).select_option("host")
    bar.get_by_role("button", name="Hide kernel").click()
    bar.get_by_label("Ignore").fill("~^gc")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("ignore="))
    wanted = {"by": ["package"], "group": ["host"], "hide_kernel": ["1"], "ignore": ["~^gc"]}
    assert {name: asked(page)[name] for name in wanted} == wanted
    expect(page.locator(".operator-chip")).to_have_text("without /^gc/")
    page.wait_for_function("() => performance.getEntriesByType('resource').some((one) => /flamegraph.*ignore=/.test(one.name))")
    page.locator(".operator-chip").click()
    page.wait_for_url(lambda url: "ignore=" not in url)


def test_the_frame_chosen_is_focused_on_and_its_callers_shown_from_its_details(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    canvas, details = page.locator(".flame-canvas").first, page.get_by_role("region", name="Details")
    canvas.focus()
    for _ in range(3):
        canvas.press("ArrowDown")
    expect(details).to_be_visible()
    details.get_by_role("button", name="Callers").click()
    page.wait_for_url(re.compile("callers=%3D"))
    expect(page.locator(".operator-chip")).to_have_count(1)
    details.get_by_role("button", name="Focus").click()
    page.wait_for_url(re.compile("focus=%3D"))
    expect(page.locator(".operator-chip")).to_have_count(2)


def test_odd_hosts_lead_to_a_comparison_with_the_rest(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    panel = page.locator(".odd-hosts")
    panel.locator("summary").click()
    expect(panel.locator("tbody tr")).to_have_count(3)
    expect(panel).to_contain_text("1 odd one, of 3 hosts")
    expect(panel.locator("tbody tr").first).to_contain_text("json::parse 31.0 % instead of 11.0 %")
    panel.get_by_role("link", name="web-17").click()
    page.wait_for_url(re.compile(r"/compare\?"))
    assert asked(page)["a"] == ['cpu{service="checkout",host!="web-17"}']
    assert asked(page)["b"] == ['cpu{service="checkout",host="web-17"}']
