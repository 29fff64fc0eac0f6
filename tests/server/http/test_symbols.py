# SPDX-License-Identifier: Apache-2.0
"""The routes of the symbol desk: what they list, what they take, what they refuse."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from server.http.app import create_app
from server.http.services import AppServices
from server.http.sizes import MOST_PIECE_BYTES
from server.query.profile_query import ProfileQuery
from server.symbols.debian_packages import DebianPackages
from server.symbols.desk import SymbolDesk
from server.symbols.file_uploads import FileUploads
from server.symbols.namer import Namer
from server.symbols.settings import SymbolSettings
from tests.server.http.clients import RANGE, get
from tests.server.query.fakes import NOW_NS, PERIOD_NS, FakeNamer, FakeStore
from tests.server.symbols.programs import compile_program, describe

WAIT_S = 300.0
TOKEN = "0123456789abcdef"
ROWS = [
    ("shop", "a", "t", ["main", "?x"], 7),
    ("mail", "a", "t", ["?x", "?y"], 23),
    ("mail", "a", "t", ["?x", "main"], 2),
    ("mail", "a", "t", ["main", "[jit]"], 5),
]


@dataclass
class Desk:
    """A client, and the namer behind it."""

    client: FlaskClient
    namer: Namer

    def put(self, data: bytes, path: str = f"/api/v1/symbols/files/{TOKEN}", **headers: str) -> tuple[int, dict[str, Any]]:
        """Send a file or a piece of one."""
        given = {"Content-Type": "application/octet-stream"} | {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.client.put(path, data=data, headers=given)
        return response.status_code, response.get_json()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    store = FakeStore()
    store.add(ROWS)
    settings = SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0, upload_max_bytes=40 << 20)
    namer = Namer(settings)
    uploads = FileUploads(settings)
    symbols = SymbolDesk(namer, uploads, DebianPackages(tmp_path))
    services = AppServices(ProfileQuery(store, FakeNamer(), lambda: NOW_NS), symbols=symbols, page_files=Path("/nonexistent"))
    yield Desk(create_app(services).test_client(), namer)
    uploads.close()
    namer.close()


def test_binaries_by_time_without_names(desk: Desk) -> None:
    answer = get(desk.client, f"/api/v1/symbols?{RANGE}")
    [row] = answer["binaries"]
    assert row.pop("since_s") > 1_700_000_000
    assert len(row.pop("id")) == 32
    assert row == {
        "path": "/opt/app",
        "build_id": "01020304",
        "build_id_kind": "gnu",
        "kind": 1,
        "state": "wanted",
        "reason": "asked of the agents",
        "quality": "",
        "why": "waiting",
        "remedy": {
            "words": "The agents that run it are asked for it. If none has it any more, upload it.",
            "command": "emberwatch symbols upload app",
        },
        "cpu_ns": 30 * PERIOD_NS,
        "unnamed_ns": 30 * PERIOD_NS,
        "sources": [],
        "is_queued": False,
    }
    [mark] = answer["marks"]
    assert (mark["service"], mark["mark"], mark["why"], mark["unnamed_ns"]) == ("mail", "[jit]", "jit", 5 * PERIOD_NS)
    assert (answer["binaries_total"], answer["pending"]) == (1, 0)
    assert get(desk.client, f"/api/v1/symbols?{RANGE}&query=cpu{{service=%22mail%22}}")["binaries"][0]["unnamed_ns"] == 23 * PERIOD_NS
    assert get(desk.client, "/api/v1/symbols?qurey=x", 400)["error"]["hint"] == "did you mean query?"


def test_file_in_one_request_names_what_runs_it(desk: Desk, tmp_path: Path) -> None:
    program = compile_program("int main(void) { return 7; }", tmp_path / "app", "-g", "-Wl,--build-id=0x01020304")
    [row] = get(desk.client, f"/api/v1/symbols?{RANGE}")["binaries"]
    size = program.stat().st_size
    expected = {"received": size, "size": size, "done": True, "build_id": "01020304", "binaries": 1, "known": False}
    assert desk.put(program.read_bytes()) == (200, expected)
    assert desk.namer.wait_idle(WAIT_S)
    [after] = get(desk.client, f"/api/v1/symbols?{RANGE}")["binaries"]
    assert (after["id"], after["state"], after["quality"], after["why"]) == (row["id"], "named", "dwarf", "")
    [source] = after["sources"]
    assert (source["origin"], source["outcome"], source["quality"]) == ("upload", "ok", "dwarf")
    assert get(desk.client, "/api/v1/symbols/files?build_id=01020304") == {"held": "dwarf"}
    assert get(desk.client, "/api/v1/symbols/files?build_id=01020305") == {"held": "empty"}
    assert desk.put(program.read_bytes())[0] == 200


def test_file_that_nobody_runs_waits_for_the_first(desk: Desk, tmp_path: Path) -> None:
    program = compile_program("int main(void) { return 7; }", tmp_path / "app", "-g")
    status, answer = desk.put(program.read_bytes())
    assert (status, answer["done"], answer["binaries"], answer["build_id"]) == (200, True, 0, describe(program).build_id.hex())
    binary = describe(program)
    desk.namer.state(binary)
    assert desk.namer.wait_idle(WAIT_S)
    assert desk.namer.state(binary).state == "named"


def test_pieces_and_a_break(desk: Desk, tmp_path: Path) -> None:
    data = compile_program("int main(void) { return 7; }", tmp_path / "app").read_bytes()
    assert get(desk.client, f"/api/v1/symbols/files/{TOKEN}") == {"received": 0}
    assert desk.put(data[:700], Content_Range=f"bytes 0-699/{len(data)}") == (200, {"received": 700, "size": len(data), "done": False})
    assert get(desk.client, f"/api/v1/symbols/files/{TOKEN}") == {"received": 700}
    assert desk.put(data[:700], Content_Range=f"bytes 0-699/{len(data)}")[1]["received"] == 700
    assert desk.put(data[700:], Content_Range=f"bytes 700-{len(data) - 1}/{len(data)}")[1]["done"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_bytes_are_taken(desk: Desk, content_type: str) -> None:
    """None of these needs a browser to ask before it sends."""
    assert desk.put(b"x", Content_Type=content_type)[0] == 415
    assert desk.client.post("/api/v1/symbols/retry", data='{"id":"x"}', content_type=content_type).status_code == 415


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>", "the file is refused: starts with 3c 68 74 6d 6c 3e: not an ELF file"),
        (bytes(4096), "not an ELF file"),
        (b"\x7fELF", "cut"),
    ],
)
def test_files_that_name_nothing(desk: Desk, data: bytes, words: str) -> None:
    status, answer = desk.put(data)
    assert status == 400
    assert words in answer["error"]["message"]


def test_program_without_symbols_or_identity_is_refused(desk: Desk, tmp_path: Path) -> None:
    bare = ("-s", "-static", "-nostdlib", "-Wl,-e,main")
    program = compile_program("int main(void) { return 7; }", tmp_path / "bare", *bare)
    assert "neither symbols nor debug data" in desk.put(program.read_bytes())[1]["error"]["message"]


@pytest.mark.parametrize("token", ["..%2f..%2fetc%2fpasswd", "0123456789ABCDEF", "a" * 15, "a" * 65, "１" * 16, "%00" * 16])
def test_token_is_hex_or_nothing(desk: Desk, token: str) -> None:
    status, _ = desk.put(b"x", f"/api/v1/symbols/files/{token}")
    assert status in (400, 404, 405)


@pytest.mark.parametrize(
    "given", ["bytes 0-6/7", "bytes 0-0/1x", "bytes 5-3/9", "bytes=0-0/1", "bytes 1-1/1", "bytes 0-0/9999999999999999"]
)
def test_range_that_does_not_fit(desk: Desk, given: str) -> None:
    assert desk.put(b"x", Content_Range=given)[0] == 400


def test_bounds_of_size(desk: Desk) -> None:
    assert desk.put(bytes(MOST_PIECE_BYTES + 1))[0] == 413
    status, answer = desk.put(b"x", Content_Range=f"bytes 0-0/{(40 << 20) + 1}")
    assert (status, "at most 41943040 are taken" in answer["error"]["message"]) == (413, True)


@pytest.mark.parametrize("build_id", ["", "12", "0102030", "0102030G", "AABBCCDD", "１２３４５６７８", "../../../x", "00" * 65])
def test_build_id_is_hex_or_nothing(desk: Desk, build_id: str) -> None:
    get(desk.client, f"/api/v1/symbols/files?build_id={build_id}", 400)


def test_trying_again(desk: Desk) -> None:
    [row] = get(desk.client, f"/api/v1/symbols?{RANGE}")["binaries"]
    response = desk.client.post("/api/v1/symbols/retry", json={"id": row["id"]})
    assert (response.status_code, response.get_json()["state"]) == (200, "pending")
    assert desk.namer.wait_idle(WAIT_S)
    assert get(desk.client, f"/api/v1/symbols?{RANGE}")["binaries"][0]["state"] == "wanted"
    assert desk.client.post("/api/v1/symbols/retry", json={"id": "0" * 32}).status_code == 404


@pytest.mark.parametrize("body", ["", "{", "[]", "7", '{"id":7}', '{"name":"x"}', "[" * 4000])
def test_retry_that_makes_no_sense(desk: Desk, body: str) -> None:
    response = desk.client.post("/api/v1/symbols/retry", data=body, content_type="application/json")
    assert response.status_code == 400
    assert desk.client.post("/api/v1/symbols/retry", data=b" " * 5000, content_type="application/json").status_code == 413
