# SPDX-License-Identifier: Apache-2.0
"""Events: the list, what each leads to, and what is said when there are none."""

import re

from playwright.sync_api import expect

from tests.web.conftest import Open


def test_the_list_tells_what_changed_where_and_with_what(open_page: Open) -> None:
    opened = open_page("/events")
    rows = opened.page.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(
        re.compile(r"json::parse.*explains serve_request, run.*\+5\.5.*12\.1 % → 17\.6 %checkout.*5 min ago2\.4\.1")
    )
    expect(rows.nth(1)).to_contain_text(re.compile(r"tls::encrypt_record.*no deploy"))
    expect(rows.nth(2)).to_contain_text("−6.2")
    assert opened.asked_for("events")[0] == "/api/v1/events?from=-7d&until=now"
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("gateway")
    expect(rows).to_have_count(1)


def test_an_event_leads_to_its_comparison_and_to_its_deploy(open_page: Open) -> None:
    page = open_page("/events").page
    page.get_by_role("link", name="tls::encrypt_record").click()
    page.wait_for_url("**/compare?**")
    expect(page.locator("[data-search]")).to_have_value("tls::encrypt_record")
    page.go_back()
    page.get_by_role("link", name="2.4.1").click()
    page.wait_for_url("**/deploys/*")


def test_none_is_said_with_what_is_watched(open_page: Open) -> None:
    page = open_page("/events", scenario="empty", width_px=375).page
    expect(page.get_by_text("Nothing changed beyond noise in this range.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 375
