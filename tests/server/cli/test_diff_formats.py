# SPDX-License-Identifier: Apache-2.0
"""Diffs as text: the direction is in words, and no name can drive a terminal."""

import json
from typing import Any

from server.cli.diff_formats import DiffFormat, render_diff
from server.cli.formats import Paper

SIDE = {"query": "cpu{}", "total": 61 * 10**9, "samples": 6100, "quality": None, "per": None}


def row(name: str, change: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "binary": "app", "a_share": 0.25, "b_share": 0.25 + change, "change": change, "low": change - 0.01,
        "high": change + 0.01, "is_noise": 0, "state": "both", "explained_by": None, "direction": "more", **more,
    }  # fmt: skip


def body(*rows: dict[str, Any]) -> bytes:
    changed = {"beyond_noise": 2, "frames": 7, "explained": 1}
    whole = {"unit": "ns", "a": SIDE, "b": SIDE, "changed": changed, "notes": ["a note"], "rows": rows, "rows_total": len(rows) + 23}
    return json.dumps(whole).encode()


def test_table_piped_is_plain_text() -> None:
    text = render_diff(body(row("parse", 0.05), row("serve", 0.05, explained_by="parse")), DiffFormat.TABLE, Paper())
    assert text.splitlines() == [
        "A: cpu{}, 61 s, 6.1 k samples",
        "B: cpu{}, 61 s, 6.1 k samples",
        "2 of 7 changed functions are beyond noise at 95 % (Benjamini-Hochberg); 1 of these are explained by others",
        "a note",
        "",
        " change       95 % interval        A        B        function  binary  explained by",
        "+5.00 %  +4.00 % .. +6.00 %  25.00 %  30.00 %  more  parse     app",
        "+5.00 %  +4.00 % .. +6.00 %  25.00 %  30.00 %  more  serve     app     parse",
        "... and 23 more functions",
    ]


def test_each_direction_has_its_word() -> None:
    words = "less", "new", "vanished", "noise", "same"
    rows = [row(name, 0.05, direction=word) for name, word in zip("abcde", words, strict=True)]
    lines = render_diff(body(*rows), DiffFormat.TABLE, Paper()).splitlines()[6:11]
    for line, word in zip(lines, words, strict=True):
        assert f" {word} " in line


def test_names_cannot_drive_a_terminal() -> None:
    for paper in (Paper(), Paper(is_terminal=True, width=200)):
        text = render_diff(body(row("evil\x1b]0;x\x07", 0.05, explained_by="\x1b[2J")), DiffFormat.TABLE, paper)
        assert r"evil\x1b]0;x\x07" in text
        assert "\x1b]" not in text
        assert "\x1b[2J" not in text


def test_json_and_folded_are_handed_on() -> None:
    assert json.loads(render_diff(b'{"kind":"cpu"}', DiffFormat.JSON, Paper())) == {"kind": "cpu"}
    assert render_diff(b"main 1 2\n", DiffFormat.FOLDED, Paper()) == "main 1 2\n"
