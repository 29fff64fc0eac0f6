# SPDX-License-Identifier: Apache-2.0
"""What holds for every answer of the app."""

from pathlib import Path

import pytest

from server.errors import LimitExceeded, Overloaded
from server.http.app import create_app
from server.http.services import AppServices
from tests.server.http.clients import ROWS, client, client_of, get
from tests.server.query.fakes import FakeStore
from tests.support.event_batches import query_of

EVERY_KIND = ("/", "/assets/main.js", "/api/v1/services", "/api/v1/nothing", "/healthz", "/metrics", "/nothing")


@pytest.mark.parametrize("path", EVERY_KIND)
def test_headers_that_keep_a_browser_safe_are_on_everything(path: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    headers = client_of(FakeStore(), tmp_path).get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["img-src"] == "'self' data:"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Cache-Control" in headers


def test_health() -> None:
    assert get(client(), "/healthz") == {"status": "ok"}
    assert get(client_of(FakeStore(), health="the disk is full"), "/healthz", 503) == {"status": "the disk is full"}


def test_a_task_that_fails_is_told_and_the_server_is_not_taken_away() -> None:
    services = AppServices(query_of(FakeStore()), failing=lambda: {"compaction": "stored data is damaged"})
    answer = create_app(services).test_client().get("/healthz")
    assert (answer.status_code, answer.get_json()) == (200, {"status": "ok", "failing": {"compaction": "stored data is damaged"}})


def test_unknown_addresses_and_methods_are_told_in_json() -> None:
    given = client()
    assert get(given, "/api/v1/flamegraphs", 404)["error"]["message"] == "there is nothing at this address"
    assert given.post("/api/v1/services").status_code == 405
    assert given.post("/api/v1/services").get_json()["error"]["message"] == "this address does not take that method"


class _Failing(FakeStore):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def kinds(self) -> list[object]:  # type: ignore[override]
        raise self._error


@pytest.mark.parametrize(
    ("error", "status"),
    [(LimitExceeded("the question reads more than 20 M rows"), 413), (Overloaded("the database is locked"), 503)],
)
def test_errors_of_the_server_have_their_status(error: Exception, status: int) -> None:
    assert get(client_of(_Failing(error)), "/api/v1/services", status)["error"]["message"] == str(error)


def test_a_bug_shows_no_traceback() -> None:
    answer = get(client_of(_Failing(RuntimeError("secret path"))), "/api/v1/services", 500)
    assert "secret" not in str(answer)
    assert "Traceback" not in str(answer)


def test_large_answers_are_compressed_when_accepted() -> None:
    import gzip

    import zstandard

    rows = [("shop", "a", "t", [f"function_{i}"], 7) for i in range(500)]
    given, path = client(rows), "/api/v1/flamegraph"
    plain = given.get(path)
    assert "Content-Encoding" not in plain.headers
    assert "Accept-Encoding" in plain.headers["Vary"]
    zipped = given.get(path, headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.data) == plain.data
    best = given.get(path, headers={"Accept-Encoding": "gzip, zstd;q=0.9"})
    assert best.headers["Content-Encoding"] == "zstd"
    assert zstandard.ZstdDecompressor().decompress(best.data) == plain.data
    assert len(best.data) < len(plain.data) / 3


def test_small_answers_are_not_compressed() -> None:
    assert "Content-Encoding" not in client(ROWS).get("/api/v1/labels", headers={"Accept-Encoding": "gzip"}).headers


def test_metrics_count_requests_and_show_figures() -> None:
    given = client(ROWS)
    given.get("/api/v1/services")
    given.get("/api/v1/nothing")
    lines = given.get("/metrics").text.splitlines()
    assert 'emberwatch_http_requests_total{route="/api/v1/services",status="200"} 1.0' in lines
    assert 'emberwatch_http_requests_total{route="none",status="404"} 1.0' in lines
    assert "emberwatch_windows_total 7.0" in lines
    assert "emberwatch_spool_bytes 23.0" in lines
    assert "emberwatch_agents 0.0" in lines
