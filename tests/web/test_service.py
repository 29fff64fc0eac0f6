# SPDX-License-Identifier: Apache-2.0
"""The service view: timeline, filters, what the data is worth, table, details."""

import re

from playwright.sync_api import expect

from tests.support.page_profiles import BUILD
from tests.web.conftest import Open


def test_a_brush_on_the_timeline_chooses_the_range_and_a_double_click_goes_back(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    box = page.locator(".timeline-canvas").bounding_box()
    assert box is not None
    y = box["y"] + 60
    page.mouse.move(box["x"] + box["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    expect(page.locator(".timeline-numbers")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d – \d\d:\d\d:\d\d$"))
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+&until=\d+$"))
    start, end = map(int, re.findall(r"=(\d+)", page.url))
    # A fifth of 15 minutes, a little more for the plot's edges.
    assert 180 <= end - start <= 195
    page.locator(".timeline-canvas").dblclick()
    page.wait_for_url("**/service/checkout")


def test_the_timeline_tells_numbers_under_the_pointer_and_works_by_keys(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.locator(".timeline-canvas").hover(position={"x": 500, "y": 60})
    expect(page.locator(".timeline-numbers")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d  [\d.]+ cores$"), use_inner_text=True)
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("ArrowLeft")
    for _ in range(6):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"from=\d+&until=\d+$"))
    start, end = map(int, re.findall(r"=(\d+)", page.url))
    assert 59 <= end - start <= 62


def test_good_data_is_said_in_grey_and_opens_to_its_account(open_page: Open) -> None:
    page = open_page("/service/checkout").page
    expect(page.locator(".loss-items")).to_contain_text("hosts 44/44")
    expect(page.locator(".loss-item.is-amber")).to_have_count(0)
    page.locator(".loss summary").click()
    # 30,937 samples, three idle ticks beside each, nothing lost.
    expect(page.locator(".account-sum")).to_have_text(
        "On its hosts, all services together: 123,748 expected = 30,937 stored + 92,811 idle + 0 filtered + 0 lost"
    )


def test_what_is_missing_is_said_in_words(open_page: Open) -> None:
    page = open_page("/service/checkout", scenario="partial").page
    expect(page.locator(".loss-warnings li")).to_have_text(
        [
            "on its hosts, all services together: 4.4 % of the samples are missing: the map of counts was full",
            "1.4 % of the samples are deeper than 127 frames and stand under [truncated]",
            "3.1 % of the time stands under [kernel hidden]: the kernel hides its addresses from the agent. Run the agent as root or with "
            "CAP_SYSLOG; where kernel.kptr_restrict is 2, type: sysctl kernel.kptr_restrict=1",
            "41 of 44 hosts still report; silent: web-3, web-9, web-12",
        ]
    )


def test_hosts_and_versions_filter_every_panel(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.get_by_role("button", name="Filter by host").click()
    page.get_by_role("checkbox", name="web-2 11.4 %").check()
    page.get_by_role("checkbox", name=re.compile("^web-7 ")).check()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Filter by host")).to_have_text("2 hosts")
    assert page.url.endswith("?host=web-2&host=web-7")
    for name in ("series", "flamegraph", "top"):
        opened.wait_until_asked(name, "host%3D%7E%22web-2%7Cweb-7%22")


def test_the_table_is_sorted_by_the_server_and_names_open_details(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    page.get_by_role("button", name="Total", exact=True).click()
    expect(page.locator(".top tbody tr").first).to_contain_text("http::Server::serve")
    opened.wait_until_asked("top", "sort=total")
    page.get_by_role("button", name="http::Server::serve").click()
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("src/checkout/2.cc:34")
    expect(details).to_contain_text(BUILD)
    expect(details).to_contain_text("100 %")
    page.get_by_role("button", name="Close the details").click()
    expect(details).to_be_hidden()


def test_the_table_can_stand_alone(open_page: Open) -> None:
    page = open_page("/service/checkout?shown=table").page
    expect(page.locator(".top tbody tr").first).to_be_visible()
    expect(page.get_by_role("region", name="Flame graph")).to_be_hidden()
    page.get_by_role("button", name="Graph", exact=True).click()
    expect(page.get_by_role("region", name="Flame graph")).to_be_visible()
    expect(page.get_by_role("region", name="Functions")).to_be_hidden()


def test_stacks_are_downloaded_as_folded_text(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    page = opened.page
    opened.wait_for_graph()
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Folded stacks").click()
    assert download.value.suggested_filename == "emberwatch.folded.txt"
    opened.wait_until_asked("flamegraph", "format=folded")


def test_a_copied_link_pins_the_range_and_restores_the_view(open_page: Open) -> None:
    opened = open_page("/service/checkout?search=json", permissions=["clipboard-read", "clipboard-write"])
    page = opened.page
    opened.wait_for_graph()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"/service/checkout\?from=\d+(\.\d+)?&until=\d+(\.\d+)?&search=json$", link)
    page.goto(link)
    opened.wait_for_graph()
    expect(page.locator(".search-share")).to_contain_text("matches")
    expect(page.get_by_label("Search functions")).to_have_value("json")


def test_hosts_show_the_odd_ones_first(open_page: Open) -> None:
    page = open_page("/hosts", scenario="partial").page
    expect(page.locator("tbody tr")).to_have_count(44)
    states = page.locator("td.column-state").all_inner_texts()[:6]
    assert states == ["silent", "silent", "silent", "losing samples", "stepped down to 49 Hz", "fine"]
