# SPDX-License-Identifier: Apache-2.0
"""Answers as text say what people say, and no name can drive a terminal."""

import json
from typing import Any

import pytest

from server.cli.formats import Format, Paper, ask_for, headline, percent, quantity, render, safe, significant

QUALITY = {
    "is_of_hosts": True,
    "lost": {"MAP_FULL": 7}, "stack_lost": {"TRUNCATED": 2}, "lost_share": 0.0007, "whole_share": 0.998, "unnamed_share": 0.004,
    "hosts": 3, "hosts_silent": ["web-17"],
}  # fmt: skip


def answer(*rows: tuple[str, int, int], total: int = 61 * 10**9, **more: Any) -> bytes:
    cells = [
        {"name": name, "binary": "app", "self": own, "total": value, "self_share": own / total, "total_share": value / total}
        for name, own, value in rows
    ]
    whole = {
        "kind": "cpu", "unit": "ns", "total": total, "seconds": 70.0, "samples": 6100, "rows": cells, "rows_total": len(cells),
        "quality": QUALITY, "nearest_data_s": None, **more,
    }  # fmt: skip
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"), (7, "ns", "7 ns"), (4_200, "ns", "4.2 us"), (4_200_000, "ns", "4.2 ms"), (61 * 10**9, "ns", "61 s"),
        (119 * 10**9, "ns", "119 s"), (120 * 10**9, "ns", "2 min"), (7200 * 10**9, "ns", "2 h"), (1_200_000, "count", "1.2 M"),
        (999, "count", "999"), (0, "count", "0"), (3 << 20, "bytes", "3 MiB"),
    ],
)  # fmt: skip
def test_units_people_say(value: int, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_numbers_have_the_digits_that_matter() -> None:
    assert [significant(v) for v in (0.87, 0.999, 1.0, 9.94, 9.96, 123.4)] == ["0.87", "1", "1", "9.9", "10", "123"]
    assert percent(0.0396) == "4.0 %"


def test_top_piped_is_plain_text() -> None:
    text = render(answer(("json::parse", 12_100_000_000, 61_000_000_000), ("main", 0, 61_000_000_000)), Format.TOP, Paper())
    assert text.splitlines() == [
        "61 s of CPU, 0.87 cores over 70 s, 6.1 k samples",
        "lost on its hosts 0.07 %, whole stacks 99.8 %, unnamed 0.4 %, hosts 3, map_full 7, truncated 2, silent: web-17",
        "",
        "self          total           function     binary",
        "12 s  19.8 %   61 s  100.0 %  json::parse  app",
        "0 ns   0.0 %   61 s  100.0 %  main         app",
    ]


def test_rows_that_are_not_shown_are_counted() -> None:
    assert render(answer(("a", 1, 1), rows_total=24), Format.TABLE, Paper()).endswith("... and 23 more functions\n")


def test_a_terminal_gets_a_table_of_its_width() -> None:
    text = render(answer(("x" * 300, 7, 7)), Format.TOP, Paper(is_terminal=True, width=80))
    assert "\x1b[1m61 s of CPU" in text
    assert "…" in text


def test_names_cannot_drive_the_terminal_nor_rich() -> None:
    evil = "\x1b[31m\x07[bold]\x9b2J\u202eabc\0\n"
    shown = r"\x1b[31m\x07[bold]\x9b2J\u202eabc\x00\x0a"
    assert safe(evil) == shown
    assert shown in render(answer((evil, 7, 7)), Format.TOP, Paper())
    assert shown in render(answer((evil, 7, 7)), Format.TOP, Paper(is_terminal=True, width=120))


def test_nothing_says_where_there_is_something() -> None:
    assert headline({"total": 0, "seconds": 0.0, "nearest_data_s": 1_700_000_000.0}) == (
        "no data in this range; the nearest is at 2023-11-14T22:13:20Z"
    )
    assert render(b'{"total": 0, "seconds": 0.0, "nearest_data_s": null}', Format.TOP, Paper()) == "no data in this range\n"


def test_folded_and_json_pass_through() -> None:
    assert render("t;main;日 7\n".encode(), Format.FOLDED, Paper()) == "t;main;日 7\n"
    assert json.loads(render(b'{"a":[1,2]}', Format.JSON, Paper())) == {"a": [1, 2]}


def test_each_format_knows_what_to_ask() -> None:
    assert ask_for(Format.TOP).parameters["sort"] == "self"
    assert ask_for(Format.TABLE).parameters["sort"] == "total"
    assert (ask_for(Format.FOLDED).path, ask_for(Format.FOLDED).parameters["group"]) == ("flamegraph", "thread")
    assert ask_for(Format.JSON).path == "flamegraph"
