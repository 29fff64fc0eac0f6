# SPDX-License-Identifier: Apache-2.0
"""Tables by object read as people say it, and the question asked is the one the kind needs."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.cli.formats import Ask, Format, Paper
from server.cli.object_formats import ask_about, render_answer, usual_format
from server.errors import BadRequest
from server.http.app import create_app
from server.http.services import AppServices
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_store, query_of, timed

MS = 10**6
S = 10**9
ROWS = {
    "syscall": [
        EventRow(timed(*[3 * MS] * 2), object="read"),
        EventRow(timed(*[MS] * 23), object="openat:ENOENT"),
        EventRow(timed(*[MS] * 7), object="openat:EACCES"),
    ],
    "lock": [
        EventRow(timed(7 * MS), stack=["main", "take"], second=["main", "hold"], object="cache_mutex"),
        EventRow(timed(2 * MS), stack=["main", "\x1b[31mred"], object="\x1b[31m"),
    ],
    "tcp": [
        EventRow(
            {"connects": 7, "bytes_out": 3 << 20, "bytes_in": 23 << 10, "segments_out": 1000, "retransmits": 23, "rtt_08": 7},
            object="out 10.0.0.7:5432",
        ),
        EventRow({"accepts": 2}, object="in :8080"),
    ],
    "time": [EventRow({"switches": 7, "cpu_ns": 7 * S, "poll_ns": 93 * S})],
    "offcpu": [EventRow({"count": 3, "ns": 3 * S}, stack=["a"], wait_class="net"), EventRow({"count": 9, "ns": 9 * S}, wait_class="poll")],
}


@pytest.fixture
def answer_of(tmp_path: Path) -> Any:
    query = query_of(event_store(tmp_path, [(0, Window(ROWS, lost={"lock": 2}))]))
    client = create_app(AppServices(query=query, page_files=Path("/nonexistent"))).test_client()

    def text(selector: str, by: str = "", idle: str = "", paper: Paper | None = None, wanted: Format = Format.TOP) -> list[str]:
        ask = ask_about(selector, wanted, by, idle)
        asked = {"query": selector, "from": str(START_UNIX_NS // S), "until": str(START_UNIX_NS // S + 10), **ask.parameters}
        body = client.get(f"/api/v1/{ask.path}", query_string=asked).data
        return render_answer(body, wanted, paper or Paper()).splitlines()

    return text


def test_calls_with_errors_named(answer_of: Any) -> None:
    assert answer_of("syscall{}") == [
        "32 calls, 36 ms in them over 10 s",
        "",
        "call    count               errors  total  mean     p50   p99   max",
        "openat     30  ENOENT 23, EACCES 7  30 ms  1 ms  768 us  1 ms  1 ms",
        "read        2                    -   6 ms  3 ms    3 ms  3 ms  3 ms",
    ]


def test_locks_with_who_waits_and_who_holds(answer_of: Any) -> None:
    lines = answer_of("lock{}")
    assert lines[:2] == ["2 waits, 9 ms in them over 10 s", "lost on its hosts 50.00 %, map_full 2"]
    assert " ".join(lines[4].split()) == "cache_mutex 1 7 ms 7 ms 7 ms 7 ms 7 ms take 100.0 % hold 100.0 %"
    assert lines[5].startswith("\\x1b[31m ")
    assert "\x1b" not in "".join(lines)


def test_peers(answer_of: Any) -> None:
    assert answer_of("tcp{}")[0] == "7 connects, 3 MiB out, 23 KiB in over 10 s"
    (peer,) = [line for line in answer_of("tcp{}") if line.startswith("out ")]
    assert peer.split() == [
        *("out", "10.0.0.7:5432", "7", "0", "3", "MiB", "23", "KiB", "2.30", "%", "192", "us", "255", "us", "0", "0"),
    ]  # fmt: skip


def test_where_the_second_went(answer_of: Any) -> None:
    assert answer_of("time{}") == ["100 s of threads over 10 s", "", "service  switches  cpu  poll", "shop            7  7 s  93 s"]


def test_waits_by_class_and_without_those_for_work(answer_of: Any) -> None:
    assert answer_of("offcpu{}")[0] == "3 s of waiting, 0.30 threads over 10 s, 3 waits, waiting for work hidden: 75.0 % (poll 75.0 %)"
    assert answer_of("offcpu{}", idle="show")[0].endswith("12 waits, waiting for work shown: 75.0 % (poll 75.0 %)")
    assert [line.split()[0] for line in answer_of("offcpu{}", by="class")[3:]] == ["poll", "net"]


def test_a_terminal_gets_the_same_cells(answer_of: Any) -> None:
    plain = "".join(answer_of("syscall{}", paper=Paper(is_terminal=True, width=100)))
    assert "ENOENT 23, EACCES 7" in plain and "\x1b[" in plain


def test_what_a_kind_asks_for() -> None:
    assert ask_about("syscall{}", Format.JSON, "", "") == Ask("table", {"by": "call", "limit": "30"})
    assert ask_about("lock_hold{}", Format.TABLE, "", "") == Ask("table", {"by": "object", "limit": "30", "functions": "1"})
    assert ask_about("cpu{}", Format.TOP, "", "").path == "top"
    assert ask_about("lock{}", Format.TOP, "package", "").path == "top"
    folded = {"format": "folded", "group": "thread", "column": "ns", "idle": "only"}
    assert ask_about("offcpu{}", Format.FOLDED, "class", "only").parameters == folded
    assert ask_about("cpu{}", Format.FOLDED, "", "").parameters == {"format": "folded", "group": "thread"}
    assert ask_about("what is this", Format.TOP, "", "").path == "top"  # the server says what is wrong
    with pytest.raises(BadRequest, match="only waits can wait for work"):
        ask_about("syscall{}", Format.TOP, "", "hide")


def test_nothing_is_said_in_words() -> None:
    body = json.dumps({"by": "call", "kind": "syscall", "rows": []}).encode()
    assert render_answer(body, Format.TABLE, Paper()) == "no data in this range\n"


def test_a_recording_without_stacks_is_a_table() -> None:
    assert [usual_format(kind) for kind in ("cpu", "offcpu", "syscall_stack")] == [Format.FOLDED] * 3
    assert [usual_format(kind) for kind in ("lock", "lock_hold", "syscall", "tcp", "time")] == [Format.TABLE] * 5


def test_folded_calls_and_locks_stand_under_their_names(answer_of: Any) -> None:
    assert answer_of("syscall{}", wanted=Format.FOLDED) == ["openat:EACCES 7", "openat:ENOENT 23", "read 2"]
    assert answer_of("lock{}", wanted=Format.FOLDED)[1] == f"cache_mutex;main;take {7 * MS}"
