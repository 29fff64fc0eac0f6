# SPDX-License-Identifier: Apache-2.0
"""The symbol desk: what lacks names, why, what mends it; files dropped on it; one binary over the page."""

import re

from playwright.sync_api import FilePayload, Page, expect

from tests.support.upstreams import until
from tests.web.conftest import Open

ELF = b"\x7fELF" + bytes(range(256)) * 20_000  # a little over one piece of 4 MiB


def file(name: str, data: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


def names(page: Page) -> list[str]:
    return page.locator(".symbol-name").all_inner_texts()


def test_most_time_without_names_first_and_what_mends_it(open_page: Open) -> None:
    page = open_page("/symbols").page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(8)
    assert names(page)[:5] == ["[jit]", "libfoo.so.2", "payments", "node", "plugin.so"]
    expect(rows.nth(1)).to_contain_text(re.compile(r"libfoo\.so\.2.*61 s.*25\.5 %stripped.*1 dapt install libfoo2-dbgsym"))
    expect(rows.nth(0)).to_contain_text(re.compile(r"service search-api.*137 s.*JIT without map"))
    expect(page.locator(".stats")).to_have_text("CPU without names239 s15.2 %To mend5Binaries8Being read2")


def test_filter_and_sort_stand_in_the_address(open_page: Open) -> None:
    page = open_page("/symbols").page
    page.get_by_label("Filter by path, build ID, service or reason").fill("OTHER build")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Filter by path, build ID, service or reason").fill("")
    page.get_by_role("button", name="Why").click()
    expect(page).to_have_url(re.compile(r"sort=state"))
    assert names(page)[:3] == ["plugin.so", "payments", "libfoo.so.2"]


def test_one_binary_tells_its_sources_and_is_tried_again(open_page: Open) -> None:
    opened = open_page("/symbols")
    page = opened.page
    page.get_by_role("button", name="libfoo.so.2", exact=True).click()
    dialog = page.get_by_role("dialog")
    sources = dialog.locator(".symbol-sources li")
    expect(sources).to_have_count(4)
    expect(sources.nth(1)).to_contain_text(re.compile(r"not theredebuginfod https://debuginfod\.debian\.netdoes not have it8 min ago"))
    expect(sources.nth(3)).to_contain_text("exported functions only")
    expect(dialog).to_contain_text("9f" * 20)
    dialog.get_by_role("button", name="Try again").click()
    expect(page.locator("#toast")).to_have_text("Trying all sources of libfoo.so.2 again.")
    assert len(opened.server.files.retried) == 1
    # The page looks again by itself, for a table takes a moment.
    before = len(opened.asked_for("symbols?"))
    until(lambda: page.wait_for_timeout(50) or len(opened.asked_for("symbols?")) > before)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_chosen_files_are_sent_in_pieces_and_go_on_after_a_break(open_page: Open) -> None:
    opened = open_page("/symbols")
    page = opened.page
    expect(page.locator("tbody tr")).to_have_count(8)
    opened.server.files.failures = 1
    page.get_by_label("Files to upload").set_input_files([file("app.debug", ELF), file("notes.txt", b"no ELF file")])
    uploads = page.locator(".upload")
    expect(uploads.filter(has_text="app.debug")).to_contain_text("takenapp.debugnames what runs")
    expect(uploads.filter(has_text="notes.txt")).to_contain_text("refusednotes.txtthe file is refused: not an ELF file")
    assert opened.server.files.taken == [ELF]


def test_files_may_be_dropped_anywhere(open_page: Open) -> None:
    opened = open_page("/symbols")
    page = opened.page
    expect(page.locator("tbody tr")).to_have_count(8)
    transfer = page.evaluate_handle(
        "() => { const held = new DataTransfer(); held.items.add(new File(['\\x7fELF and more'], 'dropped.so')); return held; }"
    )
    page.dispatch_event("h1", "dragover", {"dataTransfer": transfer})
    expect(page.locator(".drop")).to_have_class(re.compile("is-over"))
    page.dispatch_event("h1", "drop", {"dataTransfer": transfer})
    expect(page.locator(".drop")).not_to_have_class(re.compile("is-over"))
    expect(page.locator(".upload").first).to_contain_text("takendropped.so")
    assert opened.server.files.taken == [b"\x7fELF and more"]


def test_nothing_has_run_yet(open_page: Open) -> None:
    page = open_page("/symbols", scenario="empty").page
    expect(page.locator(".message-title")).to_have_text("No binary ran in this range.")
    expect(page.get_by_text("Drop binaries or debug files here.")).to_be_visible()


def test_narrow_screen_has_all_of_it(open_page: Open) -> None:
    page = open_page("/symbols", width_px=375, theme="dark").page
    expect(page.locator("tbody tr")).to_have_count(8)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    cut = "[...document.querySelectorAll('.is-cards td')].filter((cell) => cell.scrollWidth > cell.clientWidth)"
    assert page.evaluate(f"{cut}.map((cell) => cell.innerText)") == []
    page.get_by_role("button", name="libfoo.so.2", exact=True).click()
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 375
