# SPDX-License-Identifier: Apache-2.0
"""Routes of event kinds: parameters are read strictly, answers are columns without surprises."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from server.http.app import create_app
from server.http.services import AppServices
from server.query.profile_query import ProfileQuery
from tests.server.http.clients import get
from tests.server.query.fakes import NOW_NS, FakeNamer, FakeStore
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_store, query_of, timed

START_S = START_UNIX_NS // 10**9
RANGE = f"from={START_S}&until={START_S + 20}"
MS = 10**6
ROWS = {
    "syscall": [EventRow(timed(3 * MS, 5 * MS), object="read"), EventRow(timed(2 * MS), object="openat:ENOENT")],
    "offcpu": [
        EventRow({"count": 7, "ns": 7 * MS}, stack=["main", "take"], second=["waker", "give"], wait_class="lock"),
        EventRow({"count": 23, "ns": 23 * MS}, stack=["main", "loop"], wait_class="poll"),
    ],
    "lock": [EventRow(timed(MS), stack=["main", "take"], second=["main", "hold"], object="mutex")],
    "time": [EventRow({"switches": 7, "cpu_ns": 20 * MS, "poll_ns": 80 * MS})],
}


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    store = event_store(tmp_path, [(0, Window(ROWS))])
    return create_app(AppServices(query=query_of(store), page_files=Path("/nonexistent"))).test_client()


def test_a_table_of_calls(client: FlaskClient) -> None:
    answer = get(client, f"/api/v1/table?query=syscall{{}}&by=call&{RANGE}")
    assert [row["name"] for row in answer["rows"]] == ["read", "openat"]
    assert answer["rows"][1]["errors"] == [{"error": "ENOENT", "count": 1}]
    assert answer["rows"][0]["values"] == {"count": 2, "ns": 8 * MS, "max_ns": 5 * MS}
    buckets = answer["rows"][0]["histograms"]["bucket"]
    assert (sum(buckets["counts"]), len(buckets["counts"])) == (2, 32)
    assert buckets["p99_ns"] == 5 * MS
    assert answer["columns"][2] == {"name": "max_ns", "unit": "ns", "merge": "max"}
    assert (answer["rows_total"], answer["totals"]["count"], answer["seconds"], answer["sort"]) == (2, 3, 10.0, "ns")


def test_functions_of_a_lock(client: FlaskClient) -> None:
    (row,) = get(client, f"/api/v1/table?query=lock{{}}&functions=1&{RANGE}")["rows"]
    assert (row["first"], row["second"]) == ([{"name": "take", "share": 1.0}], [{"name": "hold", "share": 1.0}])


def test_a_heat_map(client: FlaskClient) -> None:
    answer = get(client, f"/api/v1/heatmap?query=syscall{{}}&step=10&{RANGE}")
    assert [sum(row) if row else row for row in answer["counts"]] == [3, None]
    assert answer["p50_ns"][1] is None
    assert answer["times_s"] == [START_S, START_S + 10]


def test_columns_over_time(client: FlaskClient) -> None:
    answer = get(client, f"/api/v1/columns?query=time{{}}&step=10&{RANGE}")
    columns = {column["name"]: column["values"] for column in answer["columns"]}
    assert columns == {"switches": [7, None], "cpu_ns": [20 * MS, None], "poll_ns": [80 * MS, None]}


def test_idle_is_told_and_hidden(client: FlaskClient) -> None:
    shown = get(client, f"/api/v1/flamegraph?query=offcpu{{}}&{RANGE}")
    hidden = get(client, f"/api/v1/top?query=offcpu{{}}&idle=hide&{RANGE}")
    assert (shown["total"], hidden["total"]) == (30 * MS, 7 * MS)
    assert shown["idle"] == hidden["idle"] == {"total": 30 * MS, "idle": 23 * MS, "share": 23 / 30, "by": {"poll": 23 * MS}}
    assert get(client, f"/api/v1/flamegraph?query=lock{{}}&{RANGE}")["idle"] is None


def test_stacks_go_on_in_their_wakers(client: FlaskClient) -> None:
    query = f"query=offcpu{{class='lock'}}&{RANGE}"
    both = get(client, f"/api/v1/flamegraph?stacks=both&{query}")
    names = [both["strings"][both["functions"]["name"][n]] if n >= 0 else "all" for n in both["nodes"]["function"]]
    assert names == ["all", "main", "take", "[woken by]", "give", "waker"]
    by_waker = get(client, f"/api/v1/top?stacks=second&{query}")
    assert [row["name"] for row in by_waker["rows"]] == ["give", "waker"]


def test_kinds_with_data(client: FlaskClient) -> None:
    answer = get(client, f"/api/v1/kinds?query=cpu{{service='shop'}}&{RANGE}")
    assert {kind["kind"]: kind["has_data"] for kind in answer["kinds"]} == dict.fromkeys(("lock", "offcpu", "syscall", "time"), True)
    none = get(client, f"/api/v1/kinds?query=cpu{{service='other'}}&{RANGE}")
    assert not any(kind["has_data"] for kind in none["kinds"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("table?query=syscall{}&by=colour", "by is 'colour'; it must be one of call, object"),
        ("table?query=syscall{}&sort=nss", "there is no column 'nss' to sort by"),
        ("table?query=syscal{}", "there is no kind 'syscal'"),
        ("heatmap?query=time{}", "kind time has no histogram"),
        ("heatmap?query=syscall{}&buckets=rtt", "kind syscall has no histogram 'rtt'"),
        ("columns?query=time{}&by=host", "there is no parameter 'by' here"),
        ("flamegraph?query=offcpu{}&idle=some", "idle is 'some'; it must be one of show, hide, only"),
        ("flamegraph?query=offcpu{}&stacks=third", "stacks is 'third'"),
    ],
)
def test_what_makes_no_sense_is_told(client: FlaskClient, path: str, words: str) -> None:
    assert words in get(client, f"/api/v1/{path}&{RANGE}", 400)["error"]["message"]


def test_peers(tmp_path: Path) -> None:
    rows = [
        EventRow({"connects": 7, "bytes_out": 23}, object="out 127.0.0.1:5432"),
        EventRow({"accepts": 7}, service="postgres", object="in :5432"),
    ]
    query = query_of(event_store(tmp_path, [(0, Window({"tcp": rows}))]))
    client = create_app(AppServices(query=query, page_files=Path("/nonexistent"))).test_client()
    answer = get(client, f"/api/v1/peers?service=shop&{RANGE}")
    (edge,) = answer["calls"]
    assert (edge["service"], edge["host"], edge["values"]["connects"], answer["called_by"]) == ("postgres", "web-1", 7, [])
    assert get(client, f"/api/v1/peers?service=postgres&{RANGE}")["called_by"] == [edge]
    assert get(client, f"/api/v1/peers?{RANGE}") == {"edges": [edge], "edges_total": 1}
    (row,) = get(client, f"/api/v1/table?query=tcp{{service='shop'}}&{RANGE}")["rows"]
    assert row["peer"] == {"service": "postgres", "host": "web-1"}


def test_totals_of_kinds_are_metrics() -> None:
    totals = {("syscall", "count"): {"shop": 23, 'a"b': 7}, ("tcp", "bytes_out"): {"shop": 2**60}, ("lock", "ns"): {"shop": 11}}
    store = FakeStore()
    services = AppServices(ProfileQuery(store, FakeNamer(), lambda: NOW_NS), kind_totals=lambda: totals, page_files=Path("/nonexistent"))
    text = create_app(services).test_client().get("/metrics").text
    assert 'emberwatch_syscall_count_total{service="shop"} 23.0' in text
    assert 'emberwatch_syscall_count_total{service="a\\"b"} 7.0' in text
    assert 'emberwatch_lock_ns_total{service="shop"} 11.0' in text
    assert "# TYPE emberwatch_tcp_bytes_out_total counter" in text
