# SPDX-License-Identifier: Apache-2.0
"""One request: an honest server, and every way in which a server can be anything else. Debian's own server as the real one."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from server.errors import ConfigError
from server.symbols.debuginfod import Answer, Fetched, FetchLimits, Request, parse_upstreams
from tests.server.symbols.programs import compile_program, describe
from tests.support.upstreams import Upstreams, send, until

BUILD_ID = bytes.fromhex("12" * 20)
BODY = b"\x7fELF" + bytes(range(256)) * 4096  # 1 MiB and a little: more than one piece
SOON_SILENT = FetchLimits(silence_s=0.5, total_s=120.0)
SOON_OVER = FetchLimits(silence_s=60.0, total_s=1.5)
PATIENT = FetchLimits(silence_s=60.0, total_s=120.0)


@pytest.fixture
def upstream() -> Iterator[Upstreams]:
    with Upstreams() as served:
        yield served


def fetch(url: str, limits: FetchLimits = PATIENT, room: Callable[[int], str] = lambda _: "") -> tuple[Fetched, bytes]:
    file = os.memfd_create("answer")
    try:
        [upstream] = parse_upstreams(url)
        fetched = Request(upstream, BUILD_ID, limits).run(file, room)
        return fetched, os.pread(file, 8 << 20, 0)
    finally:
        os.close(file)


def test_file_is_had_by_its_hex_and_nothing_else_stands_in_the_path(upstream: Upstreams) -> None:
    upstream.files[BUILD_ID.hex()] = BODY
    assert fetch(upstream.url) == (Fetched(Answer.FOUND, "", len(BODY)), BODY)
    assert upstream.asked == ["/buildid/" + "12" * 20 + "/debuginfo"]
    fetch(upstream.url + "/a/b/")
    assert upstream.asked[1] == "/a/b/buildid/" + "12" * 20 + "/debuginfo"


def test_missing_file(upstream: Upstreams) -> None:
    assert fetch(upstream.url)[0] == Fetched(Answer.MISSING, "does not have it")


def stall(handler: BaseHTTPRequestHandler, upstream: Upstreams) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 4096\r\n\r\n\x7fELF")
    upstream.is_over.wait(600)


def trickle(handler: BaseHTTPRequestHandler, upstream: Upstreams) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 4096\r\n\r\n\x7fELF")
    while not upstream.is_over.wait(0.05):
        handler.wfile.write(b"x")


def trickle_head(handler: BaseHTTPRequestHandler, upstream: Upstreams) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Endless: ")
    while not upstream.is_over.wait(0.05):
        handler.wfile.write(b"x")


def endless(handler: BaseHTTPRequestHandler, _: Upstreams) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n\x7fELF")
    while True:
        handler.wfile.write(bytes(1 << 16))


@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        (lambda h, _: send(h, 200, b"<!DOCTYPE html><html>"), Answer.UNUSABLE, "answers with HTML, not an ELF file"),
        (lambda h, _: send(h, 200, b"weba" * 100), Answer.UNUSABLE, "answers with bytes 77 65 62 61"),
        (lambda h, _: send(h, 200, bytes(4)), Answer.UNUSABLE, "answers with zeros"),
        (lambda h, _: send(h, 200, b""), Answer.UNUSABLE, "answers with nothing"),
        (lambda h, _: send(h, 302, b"", Location="http://169.254.169.254/latest"), Answer.UNUSABLE, "sends elsewhere (302)"),
        (lambda h, _: send(h, 301, b"", Location="file:///etc/passwd"), Answer.UNUSABLE, "sends elsewhere (301)"),
        (lambda h, _: send(h, 403, b"no"), Answer.UNUSABLE, "answers 403"),
        (lambda h, _: send(h, 500, b"no"), Answer.UNREACHABLE, "answers 500"),
        (lambda h, _: send(h, 429, b"no"), Answer.UNREACHABLE, "answers 429"),
        (lambda h, _: send(h, 200, BODY, Content_Encoding="gzip"), Answer.UNUSABLE, "a compression that was not asked for"),
        (lambda h, _: send(h, 200, BODY, len(BODY) + 7), Answer.UNREACHABLE, "was cut"),
        (lambda h, _: send(h, 200, BODY, 5 << 20), Answer.LIMIT, "5242880 bytes, at most 4194304"),
        (lambda h, _: h.wfile.write(b"garbage\r\n\r\n"), Answer.UNREACHABLE, "BadStatusLine"),
        (lambda h, _: h.connection.shutdown(socket.SHUT_RDWR), Answer.UNREACHABLE, ""),
        (endless, Answer.LIMIT, "more than 4194304 bytes"),
        (stall, Answer.UNREACHABLE, "silent for 0.5 s"),
        (trickle, Answer.UNREACHABLE, "not done in 1.5 s"),
        (trickle_head, Answer.UNREACHABLE, "not done in 1.5 s"),
    ],
)
def test_server_that_lies_stalls_or_fails(
    upstream: Upstreams, answer: Callable[[BaseHTTPRequestHandler, Upstreams], None], expected: Answer, reason: str
) -> None:
    upstream.answer = lambda handler: answer(handler, upstream)
    limits = {stall: SOON_SILENT, trickle: SOON_OVER, trickle_head: SOON_OVER}.get(answer, FetchLimits(size_bytes=4 << 20))
    fetched, _ = fetch(upstream.url, limits)
    assert fetched.answer == expected, fetched
    assert reason in fetched.reason
    until(lambda: len(upstream.asked) == 1)  # It may read the request when nobody waits for it any more.


def test_nobody_is_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert fetch(f"http://127.0.0.1:{taken.getsockname()[1]}")[0] == Fetched(Answer.UNREACHABLE, "Connection refused")


def test_disk_without_room_ends_the_answer(upstream: Upstreams) -> None:
    upstream.files[BUILD_ID.hex()] = BODY
    assert fetch(upstream.url, room=lambda _: "no room")[0] == Fetched(Answer.LIMIT, "no room")
    assert fetch(upstream.url, room=lambda size: "full" if size < len(BODY) else "")[0] == Fetched(Answer.LIMIT, "full")


def test_request_ends_at_once_when_it_is_aborted(upstream: Upstreams) -> None:
    upstream.answer = lambda handler: stall(handler, upstream)
    request = Request(parse_upstreams(upstream.url)[0], BUILD_ID, PATIENT)
    ended: list[Fetched] = []
    file = os.memfd_create("answer")
    thread = threading.Thread(target=lambda: ended.append(request.run(file, lambda _: "")))
    thread.start()
    until(lambda: upstream.asked != [])
    started = time.monotonic()
    while thread.is_alive():
        request.abort()
        thread.join(0.1)
    os.close(file)
    assert time.monotonic() - started < PATIENT.silence_s
    assert ended[0].answer in (Answer.UNREACHABLE, Answer.UNUSABLE)


@pytest.mark.parametrize("build_id", [b"", b"\1\2\3", bytes(65)])
def test_what_is_no_build_id_is_never_asked_for(build_id: bytes) -> None:
    with pytest.raises(ValueError, match="build id of"):
        Request(parse_upstreams("http://127.0.0.1:1")[0], build_id, PATIENT)


def test_servers_of_a_setting() -> None:
    text = "https://debuginfod.debian.net/ http://127.0.0.1:8002 http://[::1]:80/x/  https://debuginfod.debian.net"
    assert [upstream.url for upstream in parse_upstreams(text)] == [
        "https://debuginfod.debian.net",
        "http://127.0.0.1:8002",
        "http://[::1]/x",
    ]
    assert parse_upstreams("") == ()


@pytest.mark.parametrize(
    "url",
    [
        "debuginfod.debian.net", "file:///etc/passwd", "gopher://x", "ftp://x/", "http://", "https:///x", "http://u:p@x", "http://x/?a", "http://x/#a",
        "http://x:99999", "http://x:y", "http://exämple", "http://x/" + "a" * 600, "http://[::1",
    ],
)  # fmt: skip
def test_setting_that_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match="debuginfod server"):
        parse_upstreams(url)


@contextmanager
def debian_server(files: Path, work: Path) -> Iterator[str]:
    if shutil.which("debuginfod") is None:
        pytest.skip("debuginfod is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["debuginfod", "-F", "-d", str(work / "index.sqlite"), "-p", str(port), "-t", "1", "--disable-source-scan", str(files)]
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_debians_server(tmp_path: Path) -> None:
    """The real thing: it scans a folder and gives the file with debug data for the build id."""
    files = tmp_path / "files"
    files.mkdir()
    program = compile_program("int main(void) { return 7; }", files / "app", "-g")
    build_id = describe(program).build_id
    found = tmp_path / "found"
    with debian_server(files, tmp_path) as url:
        [upstream] = parse_upstreams(url)

        def ask() -> Fetched:
            with found.open("wb") as file:
                return Request(upstream, build_id, PATIENT).run(file.fileno(), lambda _: "")

        until(lambda: ask().answer == Answer.FOUND)
        assert found.read_bytes() == program.read_bytes()
        with (tmp_path / "other").open("wb") as file:
            assert Request(upstream, BUILD_ID, PATIENT).run(file.fileno(), lambda _: "").answer == Answer.MISSING
