# SPDX-License-Identifier: Apache-2.0
"""emberwatch diff: files here, selectors by a server, and mixed pairs."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.cli import diff
from server.cli import main as commands
from server.cli.ask import Api
from server.cli.diff import Given, How, diff_body
from server.cli.diff_formats import DiffFormat
from server.cli.main import main
from server.errors import BadRequest
from server.query.operators import Operators
from tests.server.http.clients import client_of
from tests.server.interop.profiles import pprof_of
from tests.server.query.fakes import START_NS, START_S, FakeStore

RANGE = str(START_S), str(START_S + 50)


class ClientApi(Api):
    """Asks the app without a network."""

    def get(self, path: str, **parameters: str) -> bytes:
        store = FakeStore()
        store.add([("shop", "a", "w", ["main", "old"], 70)], START_NS, "1")
        store.add([("shop", "a", "w", ["main", "new"], 230)], START_NS, "2")
        answer = client_of(store).get(f"/api/v1/{path}", query_string=parameters)
        assert answer.status_code == 200, answer.text
        body: bytes = answer.data
        return body


def compared(left: str, right: str, wanted: DiffFormat) -> bytes:
    return diff_body(Given(left, *RANGE), Given(right, *RANGE), ClientApi("http://nowhere"), How(wanted))


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_selectors_are_compared_by_the_server() -> None:
    sides = 'cpu{version="1"}', 'cpu{version="2"}'
    assert compared(*sides, DiffFormat.FOLDED) == b"w;main;new 0 230\nw;main;old 70 0\n"
    assert json.loads(compared(*sides, DiffFormat.JSON))["stacks"] == {"new": 1, "vanished": 1}
    assert {row["name"] for row in json.loads(compared(*sides, DiffFormat.TABLE))["rows"]} == {"main", "new", "old"}


def test_a_file_beside_a_selector(tmp_path: Path) -> None:
    file = written(tmp_path, "a.folded", "w;main;old 700\n")
    assert compared(file, 'cpu{version="1"}', DiffFormat.FOLDED) == b"w;main;old 700 70\n"
    answer = json.loads(compared(file, 'cpu{version="1"}', DiffFormat.JSON))
    assert answer["changed"] == {"beyond_noise": 0, "frames": 0}
    assert (answer["a"]["query"], answer["b"]["query"]) == (file, 'cpu{version="1"}')


def test_files_as_a_table(tmp_path: Path) -> None:
    sides = [written(tmp_path, "a", "main;x 700\nmain;y 300\n"), written(tmp_path, "b", "main;x 700\nmain;y 100\nmain;z 200\n")]
    done = CliRunner().invoke(main, ["diff", *sides, "--server", "127.0.0.1:1"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[:2] == [f"A: {sides[0]}, 1 k", f"B: {sides[1]}, 1 k"]
    assert lines[2] == "2 of 2 changed functions are beyond noise at 95 % (Benjamini-Hochberg)"
    # y: 30 and 10 of 100, 20 of both together: 1.96 * sqrt(2 * 0.2 * 0.8 / 1000) = 0.0351.
    assert any(line.split()[:2] == ["-20.00", "%"] and "-23.51 % .. -16.49 %" in line and " less " in line for line in lines)
    assert any(line.split()[:2] == ["+20.00", "%"] and " new " in line for line in lines)


def test_what_is_neither_file_nor_selector(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="there is no file '/no/such', and it is no selector either"):
        compared("/no/such", "cpu{}", DiffFormat.TABLE)
    with pytest.raises(BadRequest, match="there is no file"):
        compared("cpu{}", "a\0b", DiffFormat.TABLE)


def test_a_file_that_holds_no_stack_is_an_empty_side(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["diff", written(tmp_path, "a", ""), written(tmp_path, "b", "main 7\n")])
    assert done.exit_code == 0
    assert "side A is empty" in done.output


def test_pprof_files_are_sides_and_threads_are_left_out_then(tmp_path: Path) -> None:
    profile = tmp_path / "a.pb.gz"
    profile.write_bytes(gzip.compress(pprof_of([(["main", "old"], 700), (["main", "json::parse"], 300)])))
    assert compared(str(profile), str(profile), DiffFormat.FOLDED) == b"main;json::parse 300 300\nmain;old 700 700\n"
    file = written(tmp_path, "b.folded", "w;main;old 1000\n")
    assert compared(str(profile), file, DiffFormat.FOLDED) == b"main;json::parse 300 0\nmain;old 700 1000\n"
    assert json.loads(compared(str(profile), str(profile), DiffFormat.TABLE))["changed"]["beyond_noise"] == 0


def test_operators_and_rates_reach_the_server_and_what_is_compared_here(tmp_path: Path) -> None:
    sides = Given('cpu{version="1"}', *RANGE, "7"), Given('cpu{version="2"}', *RANGE, "23")
    how = How(DiffFormat.TABLE, {"focus": "=new"}, Operators(focus="=new"))
    answer = json.loads(diff_body(*sides, ClientApi("http://nowhere"), how))
    assert (answer["a"]["total"], answer["b"]["per"]["unit"], answer["b"]["per"]["count"]) == (0, "request", 230.0)
    file = written(tmp_path, "a.folded", "w;main;new 7\nw;main;old 23\n")
    here = json.loads(diff_body(Given(file, *RANGE), Given(file, *RANGE), ClientApi("http://nowhere"), how))
    assert (here["a"]["total"], here["a"]["per"]) == (7, None)


def test_a_folded_file_is_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MOST_LINE_BYTES", 20)
    long = written(tmp_path, "long.folded", "main;a 7\n" * 100 + "main;a 23")
    wide = written(tmp_path, "wide.folded", "main;a 7\n" + "x" * 20 + " 7\n")
    assert compared(long, long, DiffFormat.FOLDED) == b"main;a 723 723\n"
    with pytest.raises(BadRequest, match=r"wide\.folded has a line of more than"):
        compared(wide, long, DiffFormat.FOLDED)


def test_what_a_request_takes_stands_in_the_table_when_both_rates_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "api_at", ClientApi)
    sides = ['cpu{version="1"}', 'cpu{version="2"}', "--from", RANGE[0], "--until", RANGE[1]]
    rates = ["--left-rate", "7", "--right-rate", "23"]
    done = CliRunner().invoke(main, ["diff", *sides, *rates])
    assert done.exit_code == 0, done.output
    # 70 and 230 samples of 10.000019 ms, and 10 s at 7 and at 23 requests a second: one sample a request on both sides.
    assert any("main" in line and line.endswith("10 ms -> 10 ms") for line in done.output.splitlines()), done.output
    one = CliRunner().invoke(main, ["diff", *sides, *rates[:2]]).output
    assert "A: " in one and " -> " not in one
