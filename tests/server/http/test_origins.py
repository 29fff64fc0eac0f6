# SPDX-License-Identifier: Apache-2.0
"""A page of another site can neither read nor write through a person's browser."""

import socket

import pytest
from flask import Flask
from flask.testing import FlaskClient

from server.http.origins import guard_origins


@pytest.fixture
def browser() -> FlaskClient:
    app = Flask(__name__)
    guard_origins(app, "https://profiles.example.com:8443")
    app.add_url_rule("/x", view_func=lambda: "told", methods=["GET", "POST"], endpoint="x")
    app.add_url_rule("/healthz", view_func=lambda: "ok", endpoint="health")
    return app.test_client()


@pytest.mark.parametrize(
    "host",
    [
        "localhost:4040",
        "127.0.0.1:4040",
        "[::1]:4040",
        "10.2.3.4",
        "profiles.example.com",
        "PROFILES.example.com.:8443",
        socket.gethostname(),
    ],
)
def test_own_names_and_addresses_are_answered(browser: FlaskClient, host: str) -> None:
    assert browser.get("/x", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:4040", "127.0.0.1.evil.example", "[::1"])
def test_other_names_are_told_what_to_do(browser: FlaskClient, host: str) -> None:
    answer = browser.get("/x", headers={"Host": host})
    assert answer.status_code == 421
    assert "page_url" in answer.get_json()["error"]["hint"]


def test_probes_may_use_any_name(browser: FlaskClient) -> None:
    assert browser.get("/healthz", headers={"Host": "node-7.cluster"}).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("https://profiles.example.com:8443", 200),
        ("http://evil.example", 403),
        ("http://localhost:9999", 403),
        ("null", 403),
        ("http://127.0.0.1:9999", 403),
    ],
)
def test_only_the_own_page_writes(browser: FlaskClient, origin: str, status: int) -> None:
    assert browser.post("/x", headers={"Origin": origin}).status_code == status
    assert browser.get("/x", headers={"Origin": origin}).status_code == 200  # Without leave by CORS a browser does not hand it on.


def test_programs_send_no_origin(browser: FlaskClient) -> None:
    assert browser.post("/x").status_code == 200
