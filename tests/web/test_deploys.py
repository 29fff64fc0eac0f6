# SPDX-License-Identifier: Apache-2.0
"""Deploys: the list, the marks on timelines, and what each leads to."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.support.page_server import NOW_S
from tests.web.conftest import Open


def sides(page: Page) -> tuple[object, ...]:
    """Both sides of the address: selector, then range in seconds from now."""
    given = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    return given["a"], given["b"], *(int(given[name]) - NOW_S for name in ("a_from", "a_until", "b_from", "b_until"))


def test_the_list_tells_what_replaced_what_and_how_far_it_is(open_page: Open) -> None:
    opened = open_page("/deploys")
    rows = opened.page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(re.compile(r"checkout2\.4\.0 → 2\.4\.1.*6 min ago3 of 44"))
    expect(rows.nth(1)).to_contain_text(re.compile(r"gateway.*2 h agoall 22HTTP/3 for everybody · ticket 4711"))
    assert opened.asked_for("deploys")[0] == "/api/v1/deploys?from=-7d&until=now"
    opened.page.get_by_label("Filter deploys").fill("TICKET")
    expect(rows).to_have_count(1)


def test_a_canary_leads_to_both_versions_in_the_same_minutes(open_page: Open) -> None:
    opened = open_page("/deploys")
    opened.page.get_by_role("link", name="Compare canary").click()
    opened.page.wait_for_url("**/compare?**")
    versions = tuple(f'cpu{{service="checkout",version="{version}"}}' for version in ("2.4.0", "2.4.1"))
    assert sides(opened.page) == (*versions, -360, 0, -360, 0)
    opened.wait_for_graph()
    expect(opened.page.locator(".sides-relation")).to_have_text("the same minutes")


def test_a_restart_leads_to_before_and_after(open_page: Open) -> None:
    page = open_page("/deploys").page
    page.get_by_role("link", name="Compare before / after").first.click()
    page.wait_for_url("**/compare?**")
    assert sides(page)[2:] == (-10_800, -7200, -7200, -3600)


def test_a_mark_on_the_timeline_leads_there_too(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    mark = opened.page.get_by_role("link", name=re.compile("^2.4.1 replaced 2.4.0 from .* 3 of 44 hosts"))
    expect(mark).to_be_visible()
    # The deploy before lies outside of the 15 minutes.
    expect(opened.page.locator(".deploy-marker a:visible")).to_have_count(1)
    box, canvas = mark.bounding_box(), opened.page.locator(".timeline-canvas").bounding_box()
    assert box is not None and canvas is not None
    # Six of fifteen minutes before the right edge of the plot.
    wanted = canvas["x"] + 52 + (canvas["width"] - 64) * 0.6
    assert abs(box["x"] + 9 - wanted) < 2
    mark.click()
    opened.page.wait_for_url("**/compare?**")
    assert sides(opened.page)[2:] == (-360, 0, -360, 0)
    expect(opened.page.locator(".deploy-marker a:visible")).to_have_count(1)


def test_none_is_said_with_where_versions_come_from(open_page: Open) -> None:
    page = open_page("/deploys?from=-1h", scenario="empty").page
    expect(page.get_by_text("No version replaced another in this range.")).to_be_visible()
    expect(page.get_by_text("service.version")).to_be_visible()
    page.get_by_role("button", name="Show the last 7 days").click()
    page.wait_for_url("**/deploys")


def test_narrow_screens_have_one_column_and_nothing_sticks_out(open_page: Open) -> None:
    for path in ("/deploys", "/compare"):
        page = open_page(path, width_px=375).page
        page.wait_for_selector("tbody tr, .choice")
        assert page.evaluate("document.documentElement.scrollWidth") == 375
