# SPDX-License-Identifier: Apache-2.0
"""Both routes of diffs, their answers worked out by hand."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.server.http.clients import client_of, get
from tests.server.query.fakes import START_NS, START_S, WINDOW_NS, FakeStore
from tests.support.operator_cases import CASES, NEW, OLD, Case, operator_store

BOTH = f"/api/v1/diff?a=cpu{{version=%221%22}}&b=cpu{{version=%222%22}}&from={START_S}&until={START_S + 50}&column=samples"
TOP = BOTH.replace("diff?", "diff/top?")


def store() -> FakeStore:
    made = FakeStore()
    for window in range(4):
        start = START_NS + window * WINDOW_NS
        made.add([("shop", "a", "w", ["main", "old", "leaf"], 100), ("shop", "a", "w", ["main", "work"], 300)], start, "1")
        made.add([("shop", "a", "w", ["main", "work"], 600), ("shop", "a", "w", ["main", "fresh"], 200)], start, "2")
    return made


@pytest.fixture
def given() -> FlaskClient:
    return client_of(store())


def names(answer: dict[str, Any]) -> list[str]:
    texts = [answer["strings"][i] for i in answer["functions"]["name"]]
    return [{-2: "all", -1: "(trimmed)"}.get(f) or texts[f] for f in answer["nodes"]["function"]]


def test_union_has_what_vanished(given: FlaskClient) -> None:
    answer = get(given, f"{BOTH}&shape=union")
    nodes = answer["nodes"]
    assert names(answer) == ["all", "main", "fresh", "old", "leaf", "work"]
    # In units of B's 3200: fresh 1/4, leaf 1/4, work 3/4 of either.
    assert nodes["total"] == [4000, 4000, 800, 800, 800, 2400]
    assert nodes["start"] == [0, 0, 0, 800, 800, 1600]
    assert nodes["a_total"] == [1600, 1600, 0, 400, 400, 1200]
    assert nodes["b_total"] == [3200, 3200, 800, 0, 0, 2400]
    assert nodes["a_share"] == [1.0, 1.0, 0.0, 0.25, 0.25, 0.75]
    assert nodes["b_share"] == [1.0, 1.0, 0.25, 0.0, 0.0, 0.75]
    assert nodes["change"] == [0.0, 0.0, 0.25, -0.25, -0.25, 0.0]
    assert nodes["is_noise"] == [1, 1, 0, 0, 0, 1]
    assert all(low <= change <= high for low, change, high in zip(nodes["low"], nodes["change"], nodes["high"], strict=True))
    assert nodes["low"][2] > 0 > nodes["high"][3]
    assert len({len(column) for column in nodes.values()}) == 1
    assert answer["changed"] == {"beyond_noise": 3, "frames": 3}
    assert answer["stacks"] == {"new": 1, "vanished": 1}
    a = answer["a"]
    assert [a[k] for k in ("query", "from_s", "until_s", "seconds", "total", "samples", "hosts", "replicates", "is_empty")] == [
        'cpu{version="1"}', START_S, START_S + 50, 40.0, 1600, 1600, 1, 4, False,
    ]  # fmt: skip
    assert answer["b"]["quality"]["whole_share"] == 1.0
    assert (answer["kind"], answer["column"], answer["unit"], answer["shape"], answer["notes"]) == ("cpu", "samples", "count", "union", [])


def test_shapes_of_either_side(given: FlaskClient) -> None:
    assert names(get(given, f"{BOTH}&shape=a")) == ["all", "main", "old", "leaf", "work"]
    assert names(get(given, BOTH)) == ["all", "main", "fresh", "work"]


def test_swapped_sides_are_the_negative(given: FlaskClient) -> None:
    swapped = BOTH.replace("a=cpu", "x=cpu").replace("b=cpu", "a=cpu").replace("x=cpu", "b=cpu")
    there, back = get(given, f"{BOTH}&shape=union"), get(given, f"{swapped}&shape=union")
    assert back["nodes"]["change"] == [-change for change in there["nodes"]["change"]]
    assert back["nodes"]["id"] == there["nodes"]["id"]


def test_zoom_and_search(given: FlaskClient) -> None:
    whole = get(given, f"{BOTH}&shape=union&search=LEAF")
    assert whole["nodes"]["matched"] == [0, 0, 0, 0, 1, 0]
    assert whole["search"] == {"text": "LEAF", "matched_total": 800, "share": 0.2, "a_share": 0.25, "b_share": 0.0, "change": -0.25}
    zoomed = get(given, f"{BOTH}&shape=union&at={whole['nodes']['id'][3]}")
    assert names(zoomed) == ["old", "leaf"]
    assert [(a["name"], a["a_share"], a["b_share"]) for a in zoomed["ancestors"]] == [("all", 1.0, 1.0), ("main", 1.0, 1.0)]
    assert zoomed["view_total"] == 800
    gone = get(given, f"{BOTH}&shape=b&at={whole['nodes']['id'][3]}")
    assert (gone["view_total"], gone["nodes"]["a_total"]) == (0, [400])
    assert get(given, f"{BOTH}&at=12345", 404)["error"]["hint"] == "zoom out, or take longer ranges"


def test_trimmed_children_say_what_they_hide(given: FlaskClient) -> None:
    answer = get(given, f"{BOTH}&shape=union&depth=1")
    assert names(answer) == ["all", "main", "(trimmed)"]
    nodes = answer["nodes"]
    assert (nodes["a_total"][2], nodes["b_total"][2], nodes["low"][2], nodes["high"][2], nodes["is_noise"][2]) == (
        1600,
        3200,
        None,
        None,
        0,
    )


def test_table_by_change(given: FlaskClient) -> None:
    answer = get(given, TOP)
    rows = {row["name"]: row for row in answer["rows"]}
    assert answer["rows_total"] == 5
    assert {name: (row["state"], row["is_noise"], row["explained_by"]) for name, row in rows.items()} == {
        "fresh": ("new", 0, None), "old": ("vanished", 0, None), "leaf": ("vanished", 0, "old"), "main": ("both", 1, None),
        "work": ("both", 1, None),
    }  # fmt: skip
    assert [row["name"] for row in answer["rows"][2:]] == ["leaf", "main", "work"]
    assert answer["changed"] == {"beyond_noise": 3, "frames": 3, "explained": 1}
    fresh = rows["fresh"]
    assert (fresh["a_share"], fresh["b_share"], fresh["change"], fresh["a_total"], fresh["b_total"]) == (0.0, 0.25, 0.25, 0, 800)
    assert (fresh["a_self_share"], fresh["b_self_share"], fresh["binary"], fresh["code"]) == (0.0, 0.25, "app", 0)
    assert rows["main"]["b_self_share"] == 0.0


def test_table_sorted_cut_and_searched(given: FlaskClient) -> None:
    assert [row["name"] for row in get(given, f"{TOP}&sort=b&limit=2")["rows"]] == ["main", "work"]
    assert [row["name"] for row in get(given, f"{TOP}&sort=a&search=o")["rows"]] == ["work", "old"]


def test_folded_has_two_counts(given: FlaskClient) -> None:
    response = given.get(f"{BOTH}&format=folded&group=thread")
    assert response.mimetype == "text/plain"
    assert response.text == "w;main;fresh 0 800\nw;main;old;leaf 400 0\nw;main;work 1200 2400\n"


def test_an_empty_side_is_said_and_nothing_is_marked(given: FlaskClient) -> None:
    answer = get(given, BOTH.replace("%222%22", "%223%22"))
    assert answer["b"]["is_empty"]
    assert answer["notes"][0] == "side B is empty"
    assert answer["changed"]["beyond_noise"] == 0


def test_sides_have_ranges_of_their_own(given: FlaskClient) -> None:
    first = f"a_from={START_S}&a_until={START_S + 10}&b_from={START_S + 10}&b_until={START_S + 40}"
    answer = get(given, f"/api/v1/diff?query=cpu{{version=%221%22}}&{first}&column=samples")
    assert (answer["a"]["total"], answer["b"]["total"]) == (400, 1200)
    assert not any(answer["nodes"]["change"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("shape=c", "shape is 'c'; it must be one of b, a, union"),
        ("sort=a", "there is no parameter 'sort' here"),
        ("search=(&mode=regex", "the regex '(' is not valid"),
        ("a_from=x", "'x' is not a time"),
    ],
)
def test_questions_that_make_no_sense(given: FlaskClient, parameters: str, message: str) -> None:
    assert get(given, f"{BOTH}&{parameters}", 400)["error"]["message"].startswith(message)


def test_values_are_said_per_request_when_rates_are_given(given: FlaskClient) -> None:
    answer = get(given, f"{TOP}&a_rate=10&b_rate=20.5")
    # 1600 samples over 40 s at 10 a second; 3200 at 20.5.
    assert answer["a"]["per"] == {"unit": "request", "count": 400.0, "total": 4.0}
    rows = {row["name"]: row for row in answer["rows"]}
    assert (rows["work"]["a_per"], rows["work"]["b_per"]) == (3.0, 2400 / 820)
    assert {name: row["direction"] for name, row in rows.items()} == {
        "main": "same", "old": "vanished", "leaf": "vanished", "fresh": "new", "work": "same",
    }  # fmt: skip
    assert get(given, TOP)["b"]["per"] == {"unit": "second", "count": 40.0, "total": 80.0}
    assert "requests a second" in get(given, f"{TOP}&a_rate=0", 400)["error"]["message"]


def test_operators_apply_to_both_sides(given: FlaskClient) -> None:
    answer = get(given, f"{TOP}&focus=%3Dwork&callees=work")
    assert [(row["name"], row["a_total"], row["b_total"]) for row in answer["rows"]] == [("work", 1200, 2400)]
    assert get(given, f"{TOP}&group=hots", 400)["error"]["hint"] == "did you mean host?"


@pytest.mark.parametrize("case", CASES, ids=lambda case: "&".join(case.parameters))
def test_each_operator_does_to_a_diff_what_it_does_to_a_graph(case: Case) -> None:
    asked = {"a": OLD, "b": NEW, "from": START_S, "until": START_S + 60, "format": "folded", **case.parameters}
    assert client_of(operator_store()).get("/api/v1/diff", query_string=asked).text == case.diff


def test_a_canary_is_compared_in_the_minutes_both_ran() -> None:
    made = FakeStore()
    for window in range(6):
        made.add([("shop", "a", "w", ["main"], 100)], START_NS + window * WINDOW_NS, "1")
        if window >= 3:
            made.add([("shop", "b", "w", ["main"], 200)], START_NS + window * WINDOW_NS, "2")
    wide = BOTH.replace(f"until={START_S + 50}", f"until={START_S + 100}")
    answer = get(client_of(made), f"{wide}&together=1")
    assert [(side["from_s"], side["until_s"], side["total"]) for side in (answer["a"], answer["b"])] == [
        (START_S + 30, START_S + 60, 300),
        (START_S + 30, START_S + 60, 600),
    ]
    made.add([("shop", "b", "w", ["main"], 200)], START_NS + 60 * WINDOW_NS, "3")
    never = wide.replace("%222%22", "%223%22").replace(f"until={START_S + 100}", f"until={START_S + 700}")
    assert "never ran at the same time" in get(client_of(made), f"{never}&together=1", 400)["error"]["message"]
