# SPDX-License-Identifier: Apache-2.0
"""What the page says while it waits, when there is nothing, and when something fails; and that hostile names are only ever text."""

import re

from playwright.sync_api import expect

from tests.support.page_profiles import HOSTILE_NAMES
from tests.web.conftest import Open


def test_after_a_second_words_say_what_runs_and_it_can_be_cancelled(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    opened.server.delay_s = 4.0
    opened.page.get_by_role("button", name="By thread").click()
    graph = opened.page.get_by_role("region", name="Flame graph")
    expect(graph.locator(".loading-note")).to_contain_text(re.compile(r"Reading and adding up the stacks … \d s"))
    # The old picture stays, dimmed.
    expect(opened.page.locator(".flame-canvas")).to_be_visible()
    expect(graph).to_have_class(re.compile("is-loading"))
    graph.get_by_role("button", name="Cancel").click()
    expect(graph).to_contain_text("Cancelled.")
    expect(graph).not_to_have_class(re.compile("is-loading"))


def test_an_error_says_what_failed_and_what_to_do_with_details_folded(open_page: Open) -> None:
    opened = open_page("/service/checkout", scenario="error")
    graph = opened.page.get_by_role("region", name="Flame graph")
    expect(graph.get_by_role("alert")).to_have_text("The store is being read by a backup.")
    expect(graph).to_contain_text("Try again in a minute")
    expect(graph.locator("details")).not_to_have_attribute("open", "")
    expect(graph.locator("pre")).to_contain_text("status: 503")
    opened.server.scenario = "normal"
    graph.get_by_role("button", name="Try again").click()
    opened.wait_for_graph()
    expect(graph.get_by_role("alert")).to_have_count(0)


def test_a_server_that_is_gone_is_said_in_words(open_page: Open) -> None:
    opened = open_page()
    expect(opened.page.locator("tbody tr")).to_have_count(8)
    opened.page.route("**/api/**", lambda route: route.abort())
    opened.page.get_by_role("button", name="Range of time").click()
    opened.page.get_by_role("button", name="Last hour").click()
    expect(opened.page.get_by_role("alert")).to_have_text("The server cannot be reached.")
    expect(opened.page.locator("tbody tr")).to_have_count(8)
    opened.complaints[:] = [text for text in opened.complaints if "net::ERR_FAILED" not in text]


def test_an_empty_profile_says_why_and_leads_to_the_nearest_data(open_page: Open) -> None:
    opened = open_page("/service/checkout?host=web-1", scenario="empty")
    graph = opened.page.get_by_role("region", name="Flame graph")
    expect(graph).to_contain_text("No samples in this range.")
    expect(graph).to_contain_text("No sample of the hosts and versions chosen")
    expect(opened.page.locator(".flame-canvas")).to_be_hidden()
    graph.get_by_role("button", name="Show all hosts and versions").click()
    opened.page.wait_for_url("**/service/checkout")
    opened.server.scenario = "normal"
    graph.get_by_role("button", name=re.compile("Show the nearest data, ")).click()
    opened.page.wait_for_url(re.compile(r"from=\d+&until=\d+"))
    opened.wait_for_graph()


def test_hostile_names_are_text_everywhere(open_page: Open) -> None:
    for path in ("/", "/service/checkout", "/hosts", "/symbols", "/service/%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"):
        opened = open_page(path, scenario="hostile")
        opened.page.wait_for_selector("tbody tr")
        assert opened.page.evaluate("document.querySelectorAll('main img, main script, main b:not(.loss b)').length") == 0
    # The console and dialogs are checked by the fixture.


def test_every_hostile_name_can_be_read_in_the_table_and_the_tooltip(open_page: Open) -> None:
    opened = open_page("/service/checkout", scenario="hostile")
    page = opened.page
    opened.wait_for_graph()
    shown = set(page.locator(".function-name").all_inner_texts())
    plain = {name for name in HOSTILE_NAMES if name.isprintable()}
    assert plain <= shown
    assert {"class@anonymous␀/srv/x.php:3", "␛[31mred", "right\\u202eto left"} <= shown
    for share in (0.03, 0.28, 0.72):
        page.mouse.move(*opened.frame_at(share, 2))
        expect(page.locator(".tooltip .frame-name")).to_be_visible()
        assert page.locator(".tooltip .frame-name").inner_text() in shown


def test_content_security_policy_is_obeyed_without_inline(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    opened.page.wait_for_selector("[style]", state="attached")  # by the object model only: CSP allows it
    assert opened.page.evaluate("[...document.scripts].every((each) => each.src !== '')")


def test_at_375_px_nothing_is_wider_than_the_screen_and_details_slide_up(open_page: Open) -> None:
    for path in ("/", "/service/checkout", "/hosts", "/symbols"):
        opened = open_page(path, width_px=375, scenario="partial", has_touch=True)
        opened.page.wait_for_selector("tbody tr")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 375, path
    opened = open_page("/service/checkout", width_px=375, has_touch=True)
    opened.wait_for_graph()
    opened.page.locator(".flame-canvas").scroll_into_view_if_needed()
    opened.page.touchscreen.tap(*opened.frame_at(0.6, 2))
    opened.page.wait_for_function(
        "() => (({bottom, width}) => bottom === 900 && width === 375)(document.querySelector('.details').getBoundingClientRect())"
    )


def test_print_shows_the_graph_to_its_full_depth_on_light_ground(open_page: Open) -> None:
    opened = open_page("/service/checkout", theme="dark")
    opened.wait_for_graph()
    opened.page.emulate_media(media="print")
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened.page.wait_for_function(
        "() => document.querySelector('.flame-canvas').clientHeight === document.querySelector('.flame-space').clientHeight"
    )
    assert not opened.page.locator(".nav").is_visible()
    expect(opened.page.locator(".range-label")).to_be_visible()


def test_everything_can_be_reached_by_keyboard_with_a_visible_focus(open_page: Open) -> None:
    opened = open_page("/service/checkout")
    opened.wait_for_graph()
    seen = set()
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        label, outline = opened.page.evaluate(
            """() => {
              const e = document.activeElement;
              const ring = e.closest(".search") ? getComputedStyle(e.closest(".search")) : getComputedStyle(e);
              return [(e.ariaLabel || e.textContent || e.className).trim().slice(0, 30), ring.outlineStyle];
            }"""
        )
        seen.add(label)
        assert outline != "none", label
    assert {"Skip to the view", "emberwatch", "Hosts", "Range of time", "Filter by host", "Copy link", "Leaves first", "Keys"} <= seen
    assert any(label.startswith("Flame graph.") for label in seen)
    assert any(label.startswith("CPU over time.") for label in seen)


def test_names_that_are_being_made_are_said_and_come_by_themselves(open_page: Open) -> None:
    opened = open_page("/service/checkout?from=1700000000&until=1700000600", scenario="naming")
    opened.wait_for_graph()
    expect(opened.page.locator(".loss-items")).to_contain_text("naming 3 binaries…")
    opened.server.scenario = "normal"
    # The range is fixed, so that nothing but this would read it again.
    expect(opened.page.locator(".loss-items")).not_to_contain_text("naming")
