# SPDX-License-Identifier: Apache-2.0
"""The fleet: its table, its order in the address, and the first minutes without data."""

import re

from playwright.sync_api import expect

from tests.web.conftest import Open


def test_services_are_listed_by_cpu_with_their_totals(open_page: Open) -> None:
    page = open_page().page
    expect(page.locator("tbody tr")).to_have_count(8)
    expect(page.locator("tbody tr").first).to_contain_text("checkout")
    expect(page.locator(".stats")).to_contain_text("Hosts44")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Share")


def test_sorting_is_in_the_address_and_comes_back_with_history(open_page: Open) -> None:
    page = open_page().page
    page.get_by_role("button", name="Service").click()
    expect(page.locator("tbody tr").first).to_contain_text("[kernel]")
    assert page.url.endswith("?sort=service")
    page.get_by_role("button", name="Service").click()
    expect(page.locator("tbody tr").first).to_contain_text("search-api")
    page.go_back()
    expect(page.locator("tbody tr").first).to_contain_text("[kernel]")
    page.go_back()
    expect(page.locator("tbody tr").first).to_contain_text("checkout")


def test_slash_finds_the_filter_and_it_narrows_the_table(open_page: Open) -> None:
    page = open_page().page
    expect(page.locator("tbody tr")).to_have_count(8)
    page.keyboard.press("/")
    page.keyboard.type("API")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("?search=API")
    page.keyboard.type("x")
    expect(page.get_by_text("No service is named like “APIx”.")).to_be_visible()


def test_a_service_opens_in_the_same_range_and_back_returns(open_page: Open) -> None:
    page = open_page("/?from=-1h").page
    page.get_by_role("link", name="gateway").click()
    expect(page.get_by_role("heading", name="gateway")).to_be_visible()
    assert page.url.endswith("/service/gateway?from=-1h")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(8)


def test_what_the_last_deploy_changed_is_told_and_leads_to_its_report(open_page: Open) -> None:
    page = open_page().page
    changes = page.locator("td.column-change")
    expect(changes.locator(".is-more").first).to_have_text("+6.1 %")
    expect(changes.locator(".is-less").first).to_have_text("−3.1 %")
    expect(changes.locator(".is-noise").first).to_have_text("+0.4 %")
    expect(changes.filter(has_text="–")).to_have_count(2)
    page.get_by_role("button", name="Last deploy").click()
    expect(page.locator("tbody tr").first).to_contain_text("+6.1 %")
    changes.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/deploys/d[04]$"))


def test_silent_hosts_and_losses_are_said_in_amber(open_page: Open) -> None:
    page = open_page(scenario="partial").page
    expect(page.locator(".stats .badge.is-amber")).to_have_text("3 silent")
    expect(page.locator("td.column-lost .badge.is-amber").first).to_have_text("3.1 %")


def test_without_data_three_commands_are_shown_and_the_first_data_appears_by_itself(open_page: Open) -> None:
    opened = open_page(scenario="empty")
    expect(opened.page.locator(".command")).to_have_count(3)
    expect(opened.page.get_by_role("button", name="Copy: sudo emberwatch-agent doctor")).to_be_visible()
    expect(opened.page.locator(".watching")).to_have_text("Watching for the first agent …")
    opened.server.scenario = "normal"
    expect(opened.page.locator("tbody tr")).to_have_count(8)


def test_a_range_can_be_typed_and_a_wrong_one_is_told(open_page: Open) -> None:
    page = open_page().page
    page.get_by_role("button", name="Range of time").click()
    page.get_by_label("From").fill("yesterday")
    page.get_by_role("button", name="Show this range").click()
    expect(page.get_by_role("alert")).to_contain_text("“yesterday” is no time")
    page.get_by_label("From").fill("2026-05-28 20:00")
    page.get_by_label("Until").fill("2026-05-28 21:00")
    page.get_by_role("button", name="Show this range").click()
    expect(page.get_by_role("button", name="Range of time")).to_have_text("2026-05-28 20:00 – 21:00")
    assert page.url.endswith("?from=1779998400&until=1780002000")


def test_the_theme_is_kept_and_not_in_the_address(open_page: Open) -> None:
    page = open_page().page
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(ground) == "rgb(251, 250, 248)"
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(ground) == "rgb(22, 24, 28)"
    address = page.url
    page.reload()
    assert page.evaluate(ground) == "rgb(22, 24, 28)"
    assert page.url == address
    assert "?" not in address


def test_an_unknown_address_says_so(open_page: Open) -> None:
    page = open_page("/nowhere").page
    expect(page.get_by_role("heading", name="There is nothing at this address")).to_be_visible()
