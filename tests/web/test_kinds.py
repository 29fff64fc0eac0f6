# SPDX-License-Identifier: Apache-2.0
"""Kinds beside CPU in a browser: waits, locks, system calls and connections, by pointer, by keyboard and by address."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.page_events import event_client
from tests.support.page_server import NOW_S
from tests.web.conftest import Open

SERVICE = "/service/checkout"
TABS = ("offcpu", "lock", "syscall", "tcp")


@pytest.fixture(autouse=True, scope="module")
def fleet() -> None:
    """Fill the store before a page waits for it: some seconds."""
    event_client(NOW_S)


def test_tabs_are_in_the_address_and_walked_by_keys(open_page: Open) -> None:
    page = open_page(SERVICE).page
    page.get_by_role("tab", name="CPU").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?tab=offcpu$"))
    expect(page.get_by_role("region", name="Where the second went")).to_be_visible()
    expect(page.get_by_role("tab", name="Waiting")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("region", name="CPU over time")).to_be_visible()


def test_a_kind_without_data_says_why_and_leads_nowhere(open_page: Open) -> None:
    page = open_page(SERVICE, "empty").page
    tab = page.get_by_role("tab", name="Locks")
    expect(tab).to_have_attribute("aria-disabled", "true")
    expect(tab).to_have_attribute("title", re.compile("No agent saw this service wait for a lock"))
    tab.click(force=True)
    expect(page).to_have_url(re.compile(r"/service/checkout$"))


def test_where_the_second_went_leads_to_its_waits(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=offcpu")
    page = opened.page
    parts = page.get_by_role("list", name="Where the threads' time went")
    expect(parts).to_contain_text("On CPU")
    expect(parts).not_to_contain_text("Waiting for work")
    page.get_by_role("button", name="Waiting for work hidden: 8").click()
    expect(page).to_have_url(re.compile("idle=show"))
    expect(parts).to_contain_text("Waiting for work")
    parts.get_by_role("button", name="Lock").click()
    expect(page).to_have_url(re.compile("class=lock"))
    opened.wait_for_graph()
    opened.wait_until_asked("flamegraph", "class%3D%22lock%22")
    opened.wait_until_asked("flamegraph", "idle=hide")
    page.get_by_role("button", name="All classes instead of Lock").click()
    expect(page).not_to_have_url(re.compile("class="))


def test_a_press_on_a_bar_opens_the_graph_of_its_part_and_its_time(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=offcpu&shown=graph")
    page = opened.page
    chart = page.get_by_role("region", name="Where the second went").get_by_role("application")
    expect(page.get_by_role("list", name="Where the threads' time went")).to_contain_text("On CPU")
    opened.wait_for_graph()
    box = chart.bounding_box()
    assert box is not None
    on_the_ground = {"x": box["width"] / 2, "y": box["height"] - 30}
    chart.hover(position=on_the_ground)
    expect(page.locator(".second-panel .timeline-numbers")).to_have_text(re.compile(r"thread-s/s  On CPU "))
    chart.click(position=on_the_ground)
    expect(page).to_have_url(re.compile(r"from=\d+.*until=\d+"))
    expect(page.get_by_role("tab", name="CPU")).to_have_attribute("aria-selected", "true")


def test_pools_are_said_to_be_hidden_and_sums_to_be_estimated(open_page: Open) -> None:
    opened = open_page("/service/gateway?tab=offcpu")
    page = opened.page
    expect(page.get_by_text("estimated from 34")).to_be_visible()
    page.get_by_role("button", name="Idle pools hidden: 100 %").click()
    opened.wait_until_asked("flamegraph", "idle=show")
    expect(page.locator(".top tbody")).to_contain_text("pool::Worker::take")


def test_uninterruptible_waits_are_marked_and_seen_alone(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=offcpu")
    page = opened.page
    page.get_by_role("button", name=re.compile("Uninterruptible: [0-9.]+ %")).click()
    expect(page).to_have_url(re.compile("column=uninterruptible_ns"))
    opened.wait_until_asked("flamegraph", "column=uninterruptible_ns")
    expect(page.locator(".top tbody")).to_contain_text("fsync")
    expect(page.locator(".top tbody")).not_to_contain_text("recv")


def test_what_was_throttled_and_stolen_stands_beside_the_run_queue(open_page: Open) -> None:
    panel = open_page(f"{SERVICE}?tab=offcpu").page.get_by_role("region", name="Waiting for a CPU")
    expect(panel).to_contain_text(re.compile(r"throttled [\d.]+ (s|min), stolen [\d.]+ (s|min)"))


def test_a_blocked_stack_goes_on_in_its_waker(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=offcpu&class=lock")
    page = opened.page
    page.get_by_role("button", name="Off-wake").click()
    expect(page.locator(".top tbody")).to_contain_text("[woken by]")
    expect(page.locator(".legend").last).to_contain_text("Who ended the wait")
    opened.wait_until_asked("flamegraph", "stacks=both")
    page.get_by_role("button", name="By waker").click()
    expect(page.locator(".top tbody")).to_contain_text("cache::Lru::evict_loop")


def test_all_that_waits_for_work_is_said_to_be_hidden(open_page: Open) -> None:
    page = open_page(f"{SERVICE}?tab=offcpu&class=poll").page
    expect(page.get_by_text("All of it was waiting for work.")).to_be_visible()
    page.get_by_role("button", name="Show waiting for work").click()
    expect(page.locator(".graph-summary")).to_contain_text("waited")


def test_a_lock_is_chosen_and_blamed(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=lock")
    page = opened.page
    locks = page.get_by_role("region", name="Locks")
    expect(locks.locator("tbody tr").first).to_contain_text("waitscache::Lru::getholdscache::Lru::evict")
    locks.get_by_role("button", name="mutex audit::Log+0x8").click()
    expect(page).to_have_url(re.compile("object=mutex"))
    expect(page.get_by_role("region", name="Waits for locks")).to_contain_text("Waits for locks: mutex audit::Log+0x8")
    expect(page.get_by_role("region", name="Blame").locator(".graph-summary")).to_contain_text("waited for locks")
    opened.wait_until_asked("flamegraph", "stacks=both")
    page.get_by_role("button", name="All locks").click()
    expect(page).not_to_have_url(re.compile("object="))


def test_a_call_that_fails_names_its_errors(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=syscall")
    page = opened.page
    calls = page.get_by_role("region", name="System calls")
    calls.get_by_role("button", name="Failed").click()
    expect(calls.locator("tbody tr").first).to_contain_text("recvfromEAGAIN")
    calls.get_by_role("button", name="fsync").click()
    expect(page.get_by_role("region", name="How long calls took")).to_contain_text("How long calls took: fsync")
    expect(page.get_by_role("region", name="Who calls").locator(".graph-of")).to_have_text("fsync")
    opened.wait_until_asked("heatmap", "fsync%28%3A.*%29%3F")


def test_a_kind_that_is_looked_at_in_turns_says_so(open_page: Open) -> None:
    page = open_page(f"{SERVICE}?tab=syscall").page
    expect(page.get_by_role("list", name="What limits this kind")).to_contain_text("web-8 sees 52 % of what happens")
    page.get_by_role("tab", name="Locks").click()
    expect(page.get_by_role("region", name="Blame")).to_be_visible()
    expect(page.get_by_role("list", name="What limits this kind")).to_be_hidden()


def test_peers_are_named_where_both_ends_are_known(open_page: Open) -> None:
    opened = open_page(f"{SERVICE}?tab=tcp")
    page = opened.page
    peers = page.get_by_role("region", name="Peers")
    expect(peers.locator("tbody tr", has_text="127.0.0.1:6379")).to_contain_text("redis")
    expect(peers.locator("tbody tr", has_text="198.51.100.7:443").locator(".badge.is-amber")).to_have_text("1.1 %")
    talk = page.get_by_role("region", name="Who talks to whom")
    expect(talk.get_by_role("link", name="gateway")).to_be_visible()
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", name="Time to connect")).to_be_visible()
    opened.wait_until_asked("heatmap", "buckets=connect")
    talk.get_by_role("link", name="redis").click()
    expect(page).to_have_url(re.compile(r"/service/redis\?tab=tcp"))


def test_a_heat_map_is_read_and_brushed_by_keys(open_page: Open) -> None:
    page = open_page(f"{SERVICE}?tab=lock").page
    panel = page.get_by_role("region", name="Waits for locks")
    expect(panel.locator(".latency-figures")).to_contain_text("p99 up to")
    panel.locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    expect(panel.locator(".timeline-numbers")).to_contain_text("p50")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"from=\d+"))


@pytest.mark.parametrize("tab", TABS)
def test_a_narrow_screen_needs_no_scrolling_sideways(open_page: Open, tab: str) -> None:
    page = open_page(f"{SERVICE}?tab={tab}", width_px=375, theme="dark").page
    expect(page.locator(".timeline-canvas").first).to_be_visible()
    expect(page.locator(".table tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_figures_of_the_run_queue_stand_on_a_narrow_screen_too(open_page: Open) -> None:
    page = open_page(f"{SERVICE}?tab=offcpu", width_px=375).page
    panel = page.get_by_role("region", name="Waiting for a CPU")
    for words in ("p50 up to", "p99 up to", "throttled"):
        expect(panel.get_by_text(words)).to_be_visible()
