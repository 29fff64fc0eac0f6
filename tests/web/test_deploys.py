# SPDX-License-Identifier: Apache-2.0
"""Deploys: the list, the marks on timelines, and what each leads to."""

import re

from playwright.sync_api import Page, expect

from tests.support.page_diffs import deploys_answer
from tests.support.page_server import NOW_S
from tests.web.conftest import Open, asked_of


def sides(page: Page) -> tuple[object, ...]:
    """Both sides of the address: selector, then range in seconds from now."""
    given = {name: values[0] for name, values in asked_of(page).items()}
    return given["a"], given["b"], *(int(given[name]) - NOW_S for name in ("a_from", "a_until", "b_from", "b_until"))


def test_the_list_tells_what_replaced_what_and_how_far_it_is(open_page: Open) -> None:
    opened = open_page("/deploys")
    rows = opened.page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(re.compile(r"checkout2\.4\.0 → 2\.4\.1.*6 min ago3 of 44CPU per host \+6 %: 3 functions"))
    expect(rows.nth(1)).to_contain_text(re.compile(r"gateway.*2 h agoall 22no change beyond noiseHTTP/3 for everybody · ticket 4711"))
    assert opened.asked_for("deploys")[0] == "/api/v1/deploys?from=-7d&until=now"
    opened.page.get_by_label("Filter deploys").fill("TICKET")
    expect(rows).to_have_count(1)


def test_a_canary_leads_to_both_versions_in_the_same_minutes(open_page: Open) -> None:
    opened = open_page("/deploys")
    opened.page.get_by_role("link", name="Canary").click()
    opened.page.wait_for_url("**/compare?**")
    versions = tuple(f'cpu{{service="checkout",version="{version}"}}' for version in ("2.4.0", "2.4.1"))
    assert sides(opened.page) == (*versions, -360, 0, -360, 0)
    opened.wait_for_graph()
    expect(opened.page.locator(".sides-relation")).to_have_text("the same minutes")


def test_a_restart_leads_to_before_and_after(open_page: Open) -> None:
    page = open_page("/deploys").page
    page.get_by_role("link", name="Before / after").first.click()
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
    opened.page.wait_for_url("**/deploys/*")
    expect(opened.page.locator(".report-words")).to_have_text("CPU per host +6 %: 3 functions")


def test_a_report_says_what_changed_with_its_evidence_and_leads_on(open_page: Open) -> None:
    opened = open_page("/deploys")
    page = opened.page
    page.get_by_role("link", name="CPU per host +6 %: 3 functions").click()
    page.wait_for_url("**/deploys/*")
    rows = page.locator(".report-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("+5.5")
    expect(rows.nth(0)).to_contain_text("12.1 % → 17.6 %")
    expect(rows.nth(1)).to_contain_text("legacy_escape")
    expect(rows.nth(1)).to_contain_text("gone")
    expect(page.locator(".report-numbers")).to_contain_text("+4.1 % to +8.1 %")
    expect(page.get_by_role("img", name=re.compile("both versions$"))).to_be_visible()
    page.reload()  # its address is all there is
    rows.nth(0).get_by_role("link").click()
    page.wait_for_url("**/compare?**")
    expect(page.locator("[data-search]")).to_have_value(re.compile(r"^json::parse"))


def test_a_quiet_report_and_one_that_waits_say_so(open_page: Open) -> None:
    page = open_page("/deploys").page
    page.get_by_role("link", name="no change beyond noise").click()
    expect(page.get_by_text("Of 412 functions, none changed beyond noise.")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="waiting for data").click()
    expect(page.get_by_text("waiting for 120 s of the new version; there are 40 s")).to_be_visible()


def test_none_is_said_with_where_versions_come_from(open_page: Open) -> None:
    page = open_page("/deploys?from=-1h", scenario="empty").page
    expect(page.get_by_text("No version replaced another in this range.")).to_be_visible()
    expect(page.get_by_text("service.version")).to_be_visible()
    page.get_by_role("button", name="Show the last 7 days").click()
    page.wait_for_url("**/deploys")


def test_narrow_screens_have_one_column_and_nothing_sticks_out(open_page: Open) -> None:
    report = next(iter(deploys_answer(NOW_S)["deploys"]))["id"]
    for path in ("/deploys", "/compare", f"/deploys/{report}"):
        page = open_page(path, width_px=375).page
        page.wait_for_selector("tbody tr, .choice")
        assert page.evaluate("document.documentElement.scrollWidth") == 375
