# SPDX-License-Identifier: Apache-2.0
"""Every route of the API, its answers worked out by hand, and what it says to questions that make no sense."""

import pytest

from server.store.protocol import AccountSlot
from tests.server.http.clients import RANGE, ROWS, client, client_of, get
from tests.server.query.fakes import NOW_NS, PERIOD_NS, START_NS, START_S, WINDOW_NS, FakeStore, agent
from tests.support.operator_cases import CASES, Case, operator_store

GRAPH = f"/api/v1/flamegraph?{RANGE}"


def test_flamegraph_is_columns_in_preorder() -> None:
    answer = get(client(ROWS), f"{GRAPH}&column=samples&width_px=1000")
    names = [answer["strings"][i] for i in answer["functions"]["name"]]
    nodes = answer["nodes"]
    shown = [{-2: "all", -1: "(trimmed)"}.get(f) or names[f] for f in nodes["function"]]
    assert shown == ["all", "main", "parse", "__x64_sys_write", "send"]
    assert nodes["depth"] == [0, 1, 2, 3, 2]
    assert nodes["start"] == [0, 0, 0, 0, 30]
    assert nodes["total"] == [32, 32, 30, 23, 2]
    assert nodes["self"] == [0, 0, 7, 23, 2]
    assert nodes["trimmed"] == [0, 0, 0, 0, 0]
    assert nodes["matched"] == [0, 0, 0, 0, 0]
    assert len(set(nodes["id"])) == 5
    assert nodes["id"][0] == 0
    assert [answer[k] for k in ("kind", "column", "unit", "total", "view_total", "samples", "seconds")] == [
        "cpu", "samples", "count", 32, 32, 32, 10.0,
    ]  # fmt: skip
    assert (answer["from_s"], answer["until_s"]) == (START_S, START_S + 60)
    assert answer["ancestors"] == []
    assert answer["search"] is None
    assert answer["trimmed"] == {"frames": 0, "share": 0.0}
    assert dict(zip(names, answer["functions"]["code"], strict=True)) == {"main": 0, "parse": 0, "__x64_sys_write": 7, "send": 0}
    assert {len(column) for column in answer["functions"].values()} == {4}


def test_flamegraph_counts_time_by_default() -> None:
    answer = get(client(ROWS), GRAPH)
    assert (answer["column"], answer["unit"], answer["total"]) == ("ns", "ns", 32 * PERIOD_NS)


def test_zoom_by_id_names_the_ancestors() -> None:
    given = client(ROWS)
    whole = get(given, f"{GRAPH}&column=samples")
    zoomed = get(given, f"{GRAPH}&column=samples&at={whole['nodes']['id'][2]}")
    assert zoomed["view_total"] == 30
    assert zoomed["total"] == 32
    assert zoomed["nodes"]["total"] == [30, 23]
    assert [(a["name"], a["total"]) for a in zoomed["ancestors"]] == [("all", 32), ("main", 32)]
    assert [a["id"] for a in zoomed["ancestors"]] == whole["nodes"]["id"][:2]


def test_zoom_into_what_is_not_there_is_404() -> None:
    answer = get(client(ROWS), f"{GRAPH}&at=12345", 404)
    assert answer["error"]["message"] == "the frame that was zoomed into is not in this range"


def test_search_counts_over_the_whole_tree() -> None:
    answer = get(client(ROWS), f"{GRAPH}&column=samples&search=PARSE&width_px=1000")
    assert answer["search"] == {"text": "PARSE", "matched_total": 30, "share": 30 / 32}
    assert answer["nodes"]["matched"] == [0, 0, 1, 0, 0]


def test_search_by_regex() -> None:
    answer = get(client(ROWS), f"{GRAPH}&column=samples&search=^(send|__x64)&mode=regex")
    assert answer["search"]["matched_total"] == 25


def test_what_is_too_narrow_is_trimmed() -> None:
    rows = [("shop", "a", "t", ["main", "wide"], 900), *(("shop", "a", "t", ["main", f"n{i}"], 10) for i in range(10))]
    answer = get(client(rows), f"{GRAPH}&column=samples&width_px=5")
    assert answer["nodes"]["function"][0] == -2
    assert answer["nodes"]["function"][-1] == -1
    assert answer["nodes"]["trimmed"] == [0, 0, 0, 10]
    assert answer["trimmed"] == {"frames": 10, "share": 0.1}
    assert len(answer["strings"]) == 4  # "", main, app, wide: names that are not shown are not sent


def test_thread_level_inversion_and_depth() -> None:
    given = client(ROWS)
    by_thread = get(given, f"{GRAPH}&group=thread&depth=1")
    assert [by_thread["strings"][i] for i in by_thread["functions"]["name"]] == ["main", "worker-N"]
    leaves = get(given, f"{GRAPH}&invert=1&depth=1")
    assert sorted(leaves["strings"][i] for i in leaves["functions"]["name"]) == ["__x64_sys_write", "parse", "send"]


def test_folded_starts_with_the_thread_when_asked() -> None:
    response = client(ROWS).get(f"{GRAPH}&group=thread&format=folded")
    assert response.mimetype == "text/plain"
    assert response.text.splitlines() == ["main;main;parse;__x64_sys_write_[k] 23", "main;main;send 2", "worker-N;main;parse 7"]
    assert response.headers["Content-Disposition"] == 'attachment; filename="emberwatch.folded.txt"'


def test_folded_counts_samples_unless_asked_otherwise() -> None:
    given = client([("mail", "a", "main", ["send"], 7)])
    assert given.get(f"{GRAPH}&format=folded").text == "send 7\n"
    assert given.get(f"{GRAPH}&format=folded&column=ns").text == f"send {7 * PERIOD_NS}\n"


def test_a_stack_of_30000_frames_is_answered() -> None:
    answer = get(client([("deep", "a", "t", ["f", "g"] * 15_000, 23)]), f"{GRAPH}&column=samples")
    assert answer["total"] == 23
    assert answer["nodes"]["trimmed"][-1] == 29_000


def test_no_data_says_where_there_is() -> None:
    answer = get(client(ROWS), f"/api/v1/flamegraph?from={START_S - 100}&until={START_S - 50}")
    assert (answer["total"], answer["nearest_data_s"], answer["nodes"]["total"]) == (0, START_S, [0])
    assert get(client(), GRAPH)["nearest_data_s"] is None


def test_quality_stands_in_the_answer() -> None:
    store = FakeStore()
    store.add(ROWS)
    store.account_slots = [AccountSlot(b"a", "a", START_NS, 100, 32, 55, 0, {1: 13, 103: 8})]
    store.agent_infos = [agent("a"), agent("b", START_NS)]
    store.add([("shop", "b", "t", ["main"], 0)], START_NS)
    quality = get(client_of(store), GRAPH)["quality"]
    assert quality == {
        "expected": 100, "stored": 32, "idle": 55, "filtered": 0, "lost": {"MAP_FULL": 13}, "lost_share": 0.13,
        "is_of_hosts": False, "stack_lost": {}, "stack_lost_share": 0.0, "truncated_share": 0.0, "unnamed_share": 0.0,
        "unknown_share": 0.0, "unwind_stopped_share": 0.0, "kernel_hidden_share": 0.0, "whole_share": 1.0, "hosts": 2, "hosts_silent": [],
        "naming": 0,
    }  # fmt: skip


def test_top_counts_self_and_total() -> None:
    answer = get(client(ROWS), f"/api/v1/top?{RANGE}&column=samples")
    assert [(r["name"], r["self"], r["total"]) for r in answer["rows"]] == [
        ("__x64_sys_write", 23, 23),
        ("parse", 7, 30),
        ("send", 2, 2),
        ("main", 0, 32),
    ]
    assert (answer["total"], answer["rows_total"]) == (32, 4)
    assert answer["rows"][1]["total_share"] == 30 / 32
    assert set(answer["rows"][0]) == {"name", "binary", "file", "line", "code", "builds", "self", "total", "self_share", "total_share"}


def test_top_is_sorted_cut_and_searched() -> None:
    given = client(ROWS)
    by_total = get(given, f"/api/v1/top?{RANGE}&sort=total&limit=2")
    assert ([r["name"] for r in by_total["rows"]], by_total["rows_total"]) == (["main", "parse"], 4)
    found = get(given, f"/api/v1/top?{RANGE}&search=sEn")
    assert [r["name"] for r in found["rows"]] == ["send"]


def test_series_has_null_where_there_is_no_data() -> None:
    store = FakeStore()
    store.add(ROWS)
    store.add([("mail", "a", "main", ["main"], 5)], START_NS + 3 * WINDOW_NS)
    store.account_slots = [AccountSlot(b"a", "a", START_NS + 30 * 10**9, 10, 5, 0, 0, {1: 5})]
    answer = get(client_of(store), f"/api/v1/series?{RANGE}&step=10s&column=samples")
    assert answer["values"] == [32, None, None, 5, None, None]
    assert answer["loss"] == [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    assert answer["times_s"] == [START_S + 10 * i for i in range(6)]
    assert (answer["kind"], answer["unit"], answer["step_s"], answer["by"]) == ("cpu", "count", 10.0, None)
    assert get(client(), f"/api/v1/series?{RANGE}&step=30")["values"] == [None, None]


def test_services_are_sorted_by_cpu() -> None:
    store = FakeStore()
    store.add(ROWS)
    store.add([("shop", "a", "main", ["main"], 11)], START_NS + WINDOW_NS, version="2.0")
    store.account_slots = [AccountSlot(b"a", "a", START_NS, 100, 50, 0, 0, {1: 50})]
    store.agent_infos = [agent("a"), agent("gone", START_NS - 10**12)]
    answer = get(client_of(store), f"/api/v1/services?{RANGE}&step=10")
    shop, mail = answer["services"]
    assert (shop["service"], mail["service"]) == ("shop", "mail")
    assert shop["cpu_ns"] == 41 * PERIOD_NS
    assert shop["cores"] == 41 * PERIOD_NS / 20e9  # two of six slots have data
    assert shop["share"] == 41 / 43
    assert shop["spark"][:3] == [30 * PERIOD_NS / 10e9, 11 * PERIOD_NS / 10e9, 0.0]
    assert (shop["version"], shop["version_since_s"], shop["versions"], shop["hosts"], shop["samples"]) == ("2.0", START_S + 10, 2, 2, 41)
    assert (mail["lost_share"], mail["whole_share"], mail["unnamed_share"]) == (0.5, 1.0, None)
    assert (shop["cores_now"], mail["cores_now"]) == (30 * PERIOD_NS / 10e9, 2 * PERIOD_NS / 10e9)  # the last slot may not be full
    now = shop["cores_now"] + mail["cores_now"]
    assert answer["totals"] == {"cores": 43 * PERIOD_NS / 20e9, "cores_now": now, "hosts": 2, "samples": 43, "cpu_ns": 43 * PERIOD_NS}
    assert answer["agents"] == {"total": 2, "silent": 1}
    assert answer["step_s"] == 10.0


def test_an_empty_store_has_no_services() -> None:
    answer = get(client(), "/api/v1/services")
    assert (answer["services"], answer["totals"]["cores"]) == ([], 0.0)


def test_labels_and_their_values() -> None:
    given = client(ROWS)
    assert get(given, f"/api/v1/labels?{RANGE}") == {"labels": ["host", "service", "version", "zone"]}
    values = get(given, f'/api/v1/labels/host/values?{RANGE}&query=cpu{{service="shop"}}')
    assert values == {"values": [{"value": "b", "cpu_ns": 23 * PERIOD_NS}, {"value": "a", "cpu_ns": 7 * PERIOD_NS}]}
    assert get(given, f"/api/v1/labels/hots/values?{RANGE}", 404)["error"]["hint"] == "did you mean host?"


def test_agents() -> None:
    store = FakeStore()
    store.agent_infos = [agent("a"), agent("b", START_NS - 10**12), agent("gone", START_NS - 10**14)]  # a day and more ago
    store.account_slots = [AccountSlot(store.agent_infos[0].agent_id, "a", START_NS, 100, 93, 0, 0, {1: 7})]
    a, b = get(client_of(store), f"/api/v1/agents?{RANGE}")["agents"]
    assert (a["host"], a["is_silent"], a["lost"], a["lost_share"], a["cpu_share"]) == ("a", False, {"MAP_FULL": 7}, 0.07, None)
    assert (b["is_silent"], b["last_seen_s"], b["cpus"], b["rate_hz"]) == (True, START_S - 1000.0, 2, 99)


@pytest.mark.parametrize(
    ("path", "message", "position"),
    [
        ('flamegraph?query=cpu{service="x"', "expected , or } after a condition; found the end at character 16", 15),
        ("flamegraph?query=cpu{service=x}", "the value of service must stand in quotes; found 'x' at character 13", 12),
        ("flamegraph?from=yesterday", "'yesterday' is not a time", None),
        ("flamegraph?from=now&until=-5m", "the range is empty: from 2023-11-14T22:14:20Z is not before until 2023-11-14T22:09:20Z", None),
        ("flamegraph?width_px=0", "width_px is '0'; it must be a whole number from 1 to 1000000", None),
        ("flamegraph?width_px=１２", "width_px is '１２'; it must be a whole number from 1 to 1000000", None),
        ("flamegraph?at=-1", "at is '-1'; it must be a whole number from 0 to 9007199254740991", None),
        ("flamegraph?qeury=cpu", "there is no parameter 'qeury' here", None),
        ("flamegraph?from=-1h&from=-2h", "the parameter from is given more than once", None),
        ("flamegraph?mode=glob", "mode is 'glob'; it must be one of text, regex", None),
        ("flamegraph?invert=yes", "invert is 'yes'; it must be a whole number from 0 to 1", None),
        ("flamegraph?search=(&mode=regex", "the regex '(' is not valid: missing ): (", None),
        ("top?sort=name", "sort is 'name'; it must be one of self, total", None),
        ("series?step=0", "the step is shorter than 1 s", None),
        ("series?step=1s&from=-30d", "the range makes more than 2000 steps", None),
        ("services?query=cpu", "there is no parameter 'query' here", None),
    ],
)
def test_nonsense_is_a_clear_400(path: str, message: str, position: int | None) -> None:
    error = get(client(ROWS), f"/api/v1/{path}", 400)["error"]
    assert (error["message"], error["position"]) == (message, position)


def test_a_regex_bomb_is_bounded() -> None:
    rows = [("shop", "a", "t", ["a" * 4000 + "!"], 7)]
    answer = get(client(rows), f"{GRAPH}&search=(a%2B)%2B$&mode=regex")
    assert answer["search"]["matched_total"] == 0
    assert get(client(rows), f"{GRAPH}&search=((a{{1000}}){{1000}}){{1000}}&mode=regex", 400)["error"]["hint"]


def test_markup_in_names_is_only_text() -> None:
    evil = "</script><img src=x onerror=alert(1)>\u2028\x1b"
    response = client([("shop", "a", "t", [evil, "<lambda>"], 7)]).get(GRAPH)
    assert response.mimetype == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert evil in response.get_json()["strings"]
    assert response.get_data().isascii()


def test_bytes_that_are_no_text_are_shown_with_escapes() -> None:
    answer = get(client([("shop", "a", "\udcc1x", ["f\udcff"], 7)]), f"{GRAPH}&group=thread")
    assert {answer["strings"][i] for i in answer["functions"]["name"]} == {r"\xc1x", r"f\xff"}


def test_now_is_the_clock() -> None:
    assert get(client(), "/api/v1/now") == {"now_s": NOW_NS / 1e9}


def test_operators_are_parameters_of_graphs_and_tables() -> None:
    given = client(ROWS)
    focused = get(given, f"{GRAPH}&column=samples&focus=%3Dparse&hide_kernel=1&by=function")
    assert (focused["total"], focused["whole_total"], focused["samples"]) == (30, 32, 30)
    top = get(given, f"/api/v1/top?{RANGE}&column=samples&callees=parse&group=host")
    assert {(row["name"], row["total"]) for row in top["rows"]} == {("parse", 30), ("__x64_sys_write", 23), ("a", 7), ("b", 23)}
    refused = get(given, f"{GRAPH}&callers=a&callees=b", 400)
    assert refused["error"]["message"] == "callers and callees exclude one another"
    assert get(given, f"{GRAPH}&by=functions", 400)["error"]["hint"] == "did you mean function?"


@pytest.mark.parametrize("case", CASES, ids=lambda case: "&".join(case.parameters))
def test_each_operator_does_to_a_graph_what_it_says(case: Case) -> None:
    asked = {"query": "cpu{}", "from": START_S, "until": START_S + 60, "format": "folded", **case.parameters}
    assert client_of(operator_store()).get("/api/v1/flamegraph", query_string=asked).text == case.graph
