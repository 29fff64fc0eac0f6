# SPDX-License-Identifier: Apache-2.0
"""Saved views and shares: kept, listed, ended; a share gives its view's answers as they were, and nothing else."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from flask.testing import FlaskClient

from server.http.app import create_app
from server.http.services import AppServices
from server.query.profile_query import ProfileQuery
from server.store import tables
from tests.server.http.clients import RANGE, ROWS, get
from tests.server.query.fakes import NOW_NS, SECOND_NS, FakeNamer, FakeStore

GRAPH = f"/api/v1/flamegraph?query=cpu%7B%7D&{RANGE}"
SHARE = {"title": "shop", "address": f"/service/shop?{RANGE}", "answers": [GRAPH], "expires_s": 3600}


@dataclass
class Site:
    """An application whose clock can be moved."""

    store: FakeStore
    client: FlaskClient
    now_ns: int = NOW_NS


@pytest.fixture
def site() -> Site:
    store = FakeStore()
    store.add(ROWS)
    made = Site(store, None)  # type: ignore[arg-type]
    made.client = create_app(AppServices(ProfileQuery(store, FakeNamer(), lambda: made.now_ns))).test_client()
    return made


def shared(site: Site, **change: object) -> dict[str, Any]:
    response = site.client.post("/api/v1/shares", json={**SHARE, **change})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.get_json()
    return answer


def test_views_are_saved_replaced_and_dropped(site: Site) -> None:
    for name, address in (("b", "/hosts"), ("A <b>", "/service/shop?from=-1d"), ("b", "/deploys")):
        assert site.client.post("/api/v1/views", json={"name": name, "address": address}).status_code == 200
    views = get(site.client, "/api/v1/views")["views"]
    assert [(view["name"], view["address"]) for view in views] == [("A <b>", "/service/shop?from=-1d"), ("b", "/deploys")]
    assert site.client.delete(f"/api/v1/views/{views[0]['id']}").status_code == 200
    assert site.client.delete(f"/api/v1/views/{views[0]['id']}").status_code == 404
    assert len(get(site.client, "/api/v1/views")["views"]) == 1


@pytest.mark.parametrize(
    "address", ["", "hosts", "//evil.example/", "https://evil.example/", "/a b", "/\u2028", "javascript:alert(1)", "/" * 4001]
)
def test_only_addresses_of_the_page_are_saved(site: Site, address: str) -> None:
    assert site.client.post("/api/v1/views", json={"name": "x", "address": address}).status_code == 400
    assert site.client.post("/api/v1/shares", json={**SHARE, "address": address}).status_code == 400


def test_a_share_gives_the_answers_as_they_were(site: Site) -> None:
    before = get(site.client, GRAPH)
    made = shared(site)
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", made["token"])
    site.store.add([("shop", "a", "t", ["main", "late"], 999)])
    assert get(site.client, GRAPH) != before
    opened = get(site.client, f"/api/v1/shared/{made['token']}")
    assert opened["answers"] == {GRAPH: before}
    assert (opened["title"], opened["address"], opened["expires_s"]) == ("shop", SHARE["address"], NOW_NS / SECOND_NS + 3600)


def test_a_share_ends_by_itself_or_when_it_is_taken_back(site: Site) -> None:
    first, second = shared(site), shared(site, expires_s=7200)
    listed = get(site.client, "/api/v1/shares")["shares"]
    assert [share["id"] for share in listed] == [second["id"], first["id"]] and "token" not in listed[0]
    site.now_ns += 3600 * SECOND_NS
    get(site.client, f"/api/v1/shared/{first['token']}", 404)
    get(site.client, f"/api/v1/shared/{second['token']}")
    assert site.client.delete(f"/api/v1/shares/{second['id']}").status_code == 200
    get(site.client, f"/api/v1/shared/{second['token']}", 404)
    assert get(site.client, "/api/v1/shares")["shares"] == []
    assert site.client.delete(f"/api/v1/shares/{second['id']}").status_code == 404


def test_neither_the_token_nor_what_opens_a_share_is_kept(site: Site) -> None:
    made = shared(site)
    with site.store._engine.connect() as connection:
        rows = connection.execute(tables.documents.select()).all()
    assert rows and made["token"] not in repr(rows)
    get(site.client, f"/api/v1/shared/{made['id']}", 404)
    get(site.client, f"/api/v1/shared/{rows[0].key}", 404)


@pytest.mark.parametrize(
    "change",
    [{"answers": []}, {"answers": "x"}, {"answers": ["/metrics"]}, {"answers": ["/api/v1/shares"]}, {"answers": ["/api/v1/../metrics"]},
     {"answers": ["https://evil.example/api/v1/top"]}, {"answers": ["/api/v1/nothing"]}, {"answers": ["/api/v1/flamegraph?query=cpu%7B"]},
     {"answers": [GRAPH] * 25}, {"answers": [7]}, {"expires_s": 59}, {"expires_s": 1e9}, {"expires_s": None}, {"title": ""}, {"more": 1}],
)  # fmt: skip
def test_what_makes_no_share_is_refused(site: Site, change: dict[str, object]) -> None:
    assert site.client.post("/api/v1/shares", json={**SHARE, **change}).status_code == 400
    assert get(site.client, "/api/v1/shares")["shares"] == []


def test_forms_of_foreign_sites_are_refused(site: Site) -> None:
    for path in ("views", "shares"):
        assert site.client.post(f"/api/v1/{path}", data="{}", content_type="text/plain").status_code == 415
