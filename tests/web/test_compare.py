# SPDX-License-Identifier: Apache-2.0
"""Comparing two sides: how one gets there, the three shapes, the brushes, the table, and what is said of an empty side."""

import re
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.support.page_server import NOW_S
from tests.web.conftest import Open, Opened, asked_of

QUERY = quote('cpu{service="checkout"}')
BEFORE = f"/compare?a={QUERY}&a_from={NOW_S - 1800}&a_until={NOW_S - 900}&b={QUERY}&b_from={NOW_S - 900}&b_until={NOW_S}"


def asked(page: Page) -> dict[str, str]:
    """Parameters of the address."""
    return {name: values[0] for name, values in asked_of(page).items()}


def ranges(page: Page) -> tuple[int, ...]:
    """Both ranges of the address, in seconds from now."""
    return tuple(int(asked(page)[name]) - NOW_S for name in ("a_from", "a_until", "b_from", "b_until"))


def drag(opened: Opened, start: float, end: float) -> None:
    """Drag on the timeline; places are shares of its plot."""
    canvas = opened.page.locator(".timeline-canvas")
    # It answers as soon as it is read; before that there is nothing to drag.
    canvas.hover(position={"x": 500, "y": 60})
    expect(opened.page.locator(".timeline-numbers")).not_to_be_empty()
    box = canvas.bounding_box()
    assert box is not None
    left, width, y = box["x"] + 52, box["width"] - 64, box["y"] + 60
    opened.page.mouse.move(left + width * start, y)
    opened.page.mouse.down()
    opened.page.mouse.move(left + width * end, y, steps=4)
    opened.page.mouse.up()


def test_a_service_is_compared_with_the_range_before(open_page: Open) -> None:
    opened = open_page("/service/checkout?host=web-2")
    opened.wait_for_graph()
    opened.page.get_by_role("button", name="Compare", exact=True).click()
    opened.page.wait_for_url("**/compare?**")
    assert asked(opened.page)["a"] == asked(opened.page)["b"] == 'cpu{service="checkout",host="web-2"}'
    assert ranges(opened.page) == (-1800, -900, -900, 0)
    opened.wait_for_graph()
    expect(opened.page.locator(".verdict")).to_have_text(re.compile(r"^\d+ of [\d,]+ changed frames are beyond noise at 95 %$"))
    expect(opened.page.locator(".sides-relation")).to_have_text("A is right before B")
    expect(opened.page.locator(".side-words")).to_have_text(["327 s of CPU, 44 hosts", re.compile("s of CPU, 44 hosts$")])
    opened.page.go_back()
    expect(opened.page.get_by_role("heading", name="checkout")).to_be_visible()


def test_without_sides_each_service_is_offered(open_page: Open) -> None:
    opened = open_page("/compare")
    opened.page.get_by_role("link", name=re.compile("^gateway")).click()
    opened.page.wait_for_url("**/compare?**")
    assert asked(opened.page)["b"] == 'cpu{service="gateway"}'
    opened.wait_for_graph()


def test_shapes_are_linked_and_show_what_is_new_and_what_is_gone(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    opened.wait_for_graph()
    legend = page.locator(".graph .legend")
    expect(legend).to_contain_text("+ new in B")
    expect(legend).not_to_contain_text("gone in B")
    page.get_by_role("tab", name="Shaped by A").click()
    expect(legend).to_contain_text("− gone in B")
    expect(legend).not_to_contain_text("new in B")
    page.get_by_role("tab", name="Shaped by A").press("ArrowRight")
    expect(page.get_by_role("tab", name="Union")).to_have_attribute("aria-selected", "true")
    expect(legend).to_contain_text("+ new in B")
    expect(legend).to_contain_text("− gone in B")
    assert asked(page)["shape"] == "union"
    # A zoom stays from shape to shape.
    page.mouse.click(*opened.frame_at(0.7, 1))
    page.wait_for_url(re.compile("at="))
    at = asked(page)["at"]
    page.get_by_role("tab", name="Shaped by B").click()
    assert asked(page)["at"] == at
    expect(page.locator(".graph-summary")).to_have_text(re.compile(r"^[\d.]+ % of A, [\d.]+ % of B$"))


def test_a_frame_tells_both_shares_and_the_change(open_page: Open) -> None:
    opened = open_page(f"{BEFORE}&shape=union")
    opened.wait_for_graph()
    opened.page.mouse.move(*opened.frame_at(0.99, 2))
    tooltip = opened.page.locator(".tooltip")
    expect(tooltip).to_contain_text("cart::quote")
    expect(tooltip).to_contain_text(
        re.compile(r"in A0 % · 0 s.*in B2\.\d % .*change\+2\.\d points \(95 %: \+2\.\d to \+3\.\d\).*that isnew in B")
    )


def test_the_table_says_changes_in_words_with_intervals(open_page: Open) -> None:
    opened = open_page(BEFORE)
    rows = opened.page.locator(".changed-table tbody tr")
    expect(rows.first).to_contain_text("cart::legacy_total")
    expect(rows.first).to_contain_text("gone in B")
    expect(rows.first.locator(".change-number")).to_have_text(re.compile(r"^−4\.\d$"))
    expect(rows.first.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"^−4\.\d to −\d\.\d points$"))
    expect(opened.page.locator(".changed-table")).not_to_contain_text("cart::quote::inner")
    expect(opened.page.locator(".changed-note")).to_contain_text("2 more are explained by those")
    opened.page.get_by_role("button", name=re.compile("^Show all")).click()
    expect(opened.page.locator(".changed-table")).to_contain_text("explained by cart::quote")
    opened.page.get_by_role("button", name="B", exact=True).click()
    expect(rows.first.locator("td.column-b")).to_have_text(re.compile(r"^[5-9]\d\.\d %$"))
    assert asked(opened.page)["sort"] == "b"
    opened.wait_until_asked("diff/top", "sort=b")
    opened.page.get_by_role("button", name="cart::quote", exact=True).click()
    expect(opened.page.get_by_role("region", name="Details")).to_contain_text("new in B")


def test_swapping_turns_every_sign(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    expect(page.locator(".changed-table tbody tr").first.locator(".change-number")).to_have_text(re.compile("^−4"))
    page.get_by_role("button", name="Swap").click()
    expect(page.locator(".changed-table tbody tr").first.locator(".change-number")).to_have_text(re.compile(r"^\+4"))
    assert (ranges(page), asked(page)["shape"]) == ((-900, 0, -1800, -900), "a")
    expect(page.locator(".sides-relation")).to_have_text("A is right after B")


def test_brushes_are_moved_stretched_and_drawn_anew(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    opened.wait_for_graph()
    # The plot holds both ranges and an eighth before them: A begins at 0.107, B at 0.554 of its width.
    drag(opened, 0.3, 0.2)
    a_from, a_until, *b = ranges(page)
    assert a_until - a_from in (900, 901)
    assert -2040 < a_from < -1960
    assert b == [-900, 0]
    page.get_by_role("button", name="Move B").click()
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".timeline-numbers")).to_have_text(re.compile("^B  "))
    page.keyboard.press("Enter")
    b_from, b_until = ranges(page)[2:]
    assert (b_from + 900, b_until) in {(-10, -20), (-30, -60)}


def test_a_side_is_chosen_by_pickers_and_by_words(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    side = page.get_by_role("region", name="Side A")
    side.get_by_role("button", name="Filter by version").click()
    page.get_by_role("checkbox", name=re.compile("2.4.0")).check()
    page.keyboard.press("Escape")
    assert asked(page)["a"] == 'cpu{service="checkout",version="2.4.0"}'
    side.get_by_role("button", name="Range of side A").click()
    page.get_by_role("button", name="A week before B").click()
    assert ranges(page)[:2] == (-604_800 - 900, -604_800)
    side.get_by_role("button", name="Range of side A").click()
    page.get_by_role("button", name="The same minutes as B").click()
    expect(page.locator(".sides-relation")).to_have_text("the same minutes")
    side.get_by_role("button", name="Write the selector of side A").click()
    page.get_by_role("textbox", name="Selector of side A").fill('cpu{service="checkout",host!="web-1"}')
    page.get_by_role("button", name="Take this selector").click()
    expect(side.locator(".side-raw")).to_have_text('cpu{service="checkout",host!="web-1"}')
    expect(side.get_by_role("button", name="Filter by host")).to_be_hidden()


def test_every_key_of_the_list_works_on_a_comparison(open_page: Open) -> None:
    opened = open_page(f"{BEFORE}&shape=union")
    page = opened.page
    opened.wait_for_graph()
    canvas = page.locator(".flame-canvas")

    def press(key: str) -> dict[str, str]:
        canvas.press(key)
        return asked(page)

    def selected() -> str:
        return re.split("; | in ", page.locator(".flame p[aria-live]").inner_text())[0]

    def chosen() -> str:
        """A frame below the root, when nothing is being read any more."""
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        for key in ("Escape", "ArrowDown", "ArrowDown"):
            press(key)
        return selected()

    name = chosen()
    press("ArrowLeft")
    assert selected() not in (name, "all")
    press("ArrowRight")
    assert selected() == name
    press("ArrowUp")
    assert selected() == "all"
    press("ArrowDown")
    assert "at" in press("Enter")
    summary = page.locator(".graph-summary")
    expect(summary).to_have_text(re.compile("% of A, .* % of B$"))
    canvas.press("Backspace")
    expect(summary).to_have_text(re.compile("^widths are the larger share"))
    name = chosen()
    assert press("f")["focus"] == f"={name}"
    opened.wait_until_asked("diff?", "focus=%3D")
    opened.wait_until_asked("diff/top", "focus=%3D")
    page.locator(".operator-chip").click()
    name = chosen()
    assert press("c")["callers"] == f"={name}"
    opened.wait_until_asked("diff/top", "callers=%3D")
    page.locator(".operator-chip").click()
    assert press("i")["invert"] == "1"
    opened.wait_until_asked("diff?", "invert=1")
    assert press("t")["shown"] == "table"
    page.get_by_role("button", name="Both", exact=True).click()
    press("?")
    expect(page.get_by_role("dialog")).to_contain_text("focus on the frame, its callers")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("json")
    opened.wait_until_asked("diff?", "search=json")
    page.wait_for_function("() => document.querySelector('.search-share').textContent.includes('of the picture matches')")
    press("n")
    assert "json" in selected().lower()


def test_operators_of_a_comparison_are_in_the_address_and_asked_of_the_server(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    opened.wait_for_graph()
    bar = page.get_by_role("group", name="Frame operators")
    bar.get_by_label("Frames by", exact=True).select_option("package")
    bar.get_by_label("Group by", exact=True).select_option("host")
    bar.get_by_role("button", name="Hide kernel").click()
    bar.get_by_role("button", name="Fold recursion").click()
    bar.get_by_label("Ignore").fill("~^gc")
    page.keyboard.press("Enter")
    wanted = {"by": "package", "group": "host", "hide_kernel": "1", "collapse": "1", "ignore": "~^gc"}
    assert {name: asked(page)[name] for name in wanted} == wanted
    for endpoint in ("diff?", "diff/top"):
        opened.wait_until_asked(endpoint, "ignore=%7E%5Egc")
        assert all(f"{name}={value}" in opened.asked_for(endpoint)[-1] for name, value in list(wanted.items())[:4])
    page.reload()
    expect(bar.get_by_label("Group by", exact=True)).to_have_value("host")


def test_values_are_said_per_request_when_both_rates_are_given(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    first = page.locator(".changed-table tbody tr").first
    expect(first).to_contain_text("gone in B")
    for side, rate in (("A", "100"), ("B", "50")):
        field = page.get_by_label(f"Requests a second of side {side}")
        field.fill(rate)
        field.press("Enter")
    assert (asked(page)["a_rate"], asked(page)["b_rate"]) == ("100", "50")
    opened.wait_until_asked("diff/top", "b_rate=50")
    # 14.09 s of 900 s at 100 a second, and none any more.
    expect(first).to_contain_text(re.compile(r"gone in B; \d+ µs → 0 s a request \(−100 %\)"))
    # The same CPU for half the requests.
    expect(page.locator(".side-words").first).to_have_text(re.compile(r"327 s of CPU, 44 hosts, 3\.6 ms a request"))
    expect(page.locator(".side-words").last).to_have_text(re.compile(r"7\.\d ms a request$"))
    page.get_by_role("button", name="Swap").click()
    assert (asked(page)["a_rate"], asked(page)["b_rate"]) == ("50", "100")


def test_a_deploy_is_picked_here(open_page: Open) -> None:
    opened = open_page(BEFORE)
    page = opened.page
    opened.wait_for_graph()
    page.get_by_role("button", name="Compare a deploy").click()
    page.get_by_role("button", name=re.compile("^2.4.0 → 2.4.1 .*canary, 3 of 44 hosts")).click()
    versions = [f'cpu{{service="checkout",version="{version}"}}' for version in ("2.4.0", "2.4.1")]
    assert [asked(page)[side] for side in ("a", "b")] == versions
    assert ranges(page) == (-360, 0, -360, 0)
    expect(page.locator(".sides-relation")).to_have_text("the same minutes")
    opened.wait_until_asked("diff/top", "version%3D%222.4.1")


def test_times_are_those_of_a_named_zone_and_links_of_none(open_page: Open) -> None:
    page = open_page(BEFORE, timezone_id="Asia/Kolkata").page
    side = page.get_by_role("region", name="Side A")
    button = side.get_by_role("button", name="Range of side A")
    expect(button).to_have_attribute("title", "Times are UTC+5:30")
    button.click()
    expect(side.get_by_text("in your time (UTC+5:30)")).to_be_visible()
    start_s = NOW_S // 60 * 60 - 3600
    for label, time_s in (("From", start_s), ("Until", start_s + 600)):
        there = datetime.fromtimestamp(time_s, timezone(timedelta(hours=5, minutes=30)))
        side.get_by_label(label, exact=True).fill(f"{there:%Y-%m-%d %H:%M}")
    side.get_by_role("button", name="Show this range").click()
    assert (asked(page)["a_from"], asked(page)["a_until"]) == (str(start_s), str(start_s + 600))


def test_a_field_is_filled_before_anybody_can_type_into_it(open_page: Open) -> None:
    page = open_page(BEFORE).page
    expect(page.get_by_role("button", name="Write the selector of side A")).to_be_visible()
    filled = page.evaluate("""() => {
        document.querySelector('[aria-label="Write the selector of side A"]').click();
        return document.querySelector('[aria-label="Selector of side A"]').value;
    }""")
    assert filled == 'cpu{service="checkout"}'


def test_an_empty_side_is_said_in_words(open_page: Open) -> None:
    opened = open_page(f"{BEFORE}&shape=a", scenario="half")
    page = opened.page
    expect(page.locator(".compare-notes")).to_have_text("side A has no samples in its range")
    expect(page.get_by_role("region", name="Side A").locator(".side-words")).to_have_text("no samples in this range")
    expect(page.get_by_text("Side A is empty.")).to_be_visible()
    page.get_by_role("button", name="Shape it by B").click()
    opened.wait_for_graph()
    assert "shape" not in asked(page)


def test_two_empty_sides_are_said_too(open_page: Open) -> None:
    page = open_page(BEFORE, scenario="empty").page
    expect(page.get_by_text("Both sides are empty.")).to_be_visible()
    expect(page.locator(".verdict")).to_be_empty()


def test_the_same_twice_is_all_grey(open_page: Open) -> None:
    opened = open_page(BEFORE, scenario="same")
    opened.wait_for_graph()
    expect(opened.page.locator(".verdict")).to_have_text("No frame changed")
    expect(opened.page.locator(".graph .legend")).to_have_text("within noise")
    expect(opened.page.locator(".changed-note")).to_contain_text("None of")


def test_a_selector_that_cannot_be_read_is_told(open_page: Open) -> None:
    page = open_page(BEFORE.replace(QUERY, "cpu", 1)).page
    expect(page.get_by_role("alert").first).to_have_text("expected { after the kind of side A")


def test_a_time_that_is_none_is_told_and_can_be_chosen_anew(open_page: Open) -> None:
    opened = open_page(BEFORE.replace(f"a_from={NOW_S - 1800}", "a_from=yesterday"))
    page = opened.page
    expect(page.get_by_role("alert").first).to_have_text("'yesterday' is not a time")
    expect(page.get_by_text("A range of this address is no time.")).to_be_visible()
    page.get_by_role("button", name="Range of side A").click()
    page.get_by_role("button", name="Right before B").click()
    opened.wait_for_graph()
    expect(page.get_by_text("A range of this address is no time.")).to_be_hidden()


def test_hostile_names_do_nothing(open_page: Open) -> None:
    opened = open_page(f"{BEFORE}&shape=union", scenario="hostile")
    opened.wait_for_graph()
    opened.page.mouse.move(*opened.frame_at(0.5, 1))
    expect(opened.page.locator(".tooltip")).to_be_visible()
    expect(opened.page.locator(".changed-table tbody tr").first).to_be_visible()
