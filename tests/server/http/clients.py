# SPDX-License-Identifier: Apache-2.0
"""Clients of an app that answers from the fake store."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from server.http.app import create_app
from server.http.services import AppServices
from server.query.profile_query import ProfileQuery
from tests.server.query.fakes import NOW_NS, START_S, FakeNamer, FakeStore, Row

RANGE = f"from={START_S}&until={START_S + 60}"
ROWS: list[Row] = [
    ("shop", "a", "worker-N", ["main", "parse"], 7),
    ("shop", "b", "main", ["main", "parse", "__x64_sys_write_[k]"], 23),
    ("mail", "a", "main", ["main", "send"], 2),
]


def client_of(store: FakeStore, page: Path | None = None, health: str = "ok") -> FlaskClient:
    """A client whose clock stands at NOW_NS; `page` is the folder of the page."""
    services = AppServices(
        query=ProfileQuery(store, FakeNamer(), lambda: NOW_NS),
        health=lambda: health,
        counters=lambda: {"windows_total": 7.0, "spool_bytes": 23.0},
        page_files=page or Path("/nonexistent"),
    )
    return create_app(services).test_client()


def client(rows: Sequence[Row] | None = None) -> FlaskClient:
    """A client over one window of rows, or over an empty store."""
    store = FakeStore()
    if rows:
        store.add(rows)
    return client_of(store)


def get(given: FlaskClient, path: str, status: int = 200) -> dict[str, Any]:
    """Get JSON and check what all answers of the API have in common."""
    response = given.get(path)
    assert response.status_code == status, response.text
    assert response.mimetype == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    answer = response.get_json()
    assert isinstance(answer, dict)
    return answer
