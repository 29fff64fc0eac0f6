# SPDX-License-Identifier: Apache-2.0
"""The answer of a search as text: rows people can read, nothing of a name reaches the terminal raw."""

import json

from server.cli.formats import Paper
from server.cli.search import SearchFormat, bars, render_search

ANSWER = {
    "search": "parse", "unit": "ns", "total": 61 * 10**9, "share": 0.25, "services_total": 2,
    "services": [
        {
            "service": "shop", "self": 10**9, "total": 61 * 10**9, "share": 0.5, "fleet_share": 0.25, "hosts": 3,
            "trend": [0.0, None, 0.5, 1.0], "functions": [{"name": "json::parse\x1b[31m"}], "functions_total": 3,
        }
    ],
}  # fmt: skip


def test_a_line_a_service() -> None:
    text = render_search(json.dumps(ANSWER).encode(), SearchFormat.TABLE, Paper())
    lines = text.splitlines()
    assert lines[0] == "61 s, 25.0 % of the fleet, in 2 services"
    assert lines[3].split() == [
        "61",
        "s",
        "50.0",
        "%",
        "25.0",
        "%",
        "1",
        "s",
        "3",
        "▁",
        "▅█",
        "shop",
        "json::parse\\x1b[31m",
        "and",
        "2",
        "more",
    ]
    assert lines[-1] == "... and 1 more services"


def test_nothing_found_is_said() -> None:
    text = render_search(json.dumps(ANSWER | {"services": []}).encode(), SearchFormat.TABLE, Paper())
    assert text == "no function that matches parse ran in this range\n"


def test_json_is_the_answer() -> None:
    assert json.loads(render_search(json.dumps(ANSWER).encode(), SearchFormat.JSON, Paper())) == ANSWER


def test_bars_reach_from_nothing_to_the_largest() -> None:
    assert bars([0.0, 0.01, None, 0.02]) == "▁▅ █"
    assert bars([None, 0.0]) == " ▁"
