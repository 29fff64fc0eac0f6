# SPDX-License-Identifier: Apache-2.0
"""The route of deploys: what it lists, and what it takes as a note."""

import pytest
from flask.testing import FlaskClient

from tests.server.http.clients import RANGE, ROWS, client, client_of, get
from tests.server.query.fakes import START_NS, START_S, WINDOW_NS, FakeStore


@pytest.fixture
def given() -> FlaskClient:
    store = FakeStore()
    store.add(ROWS, version="1.2.3")
    store.add([("shop", "a", "t", ["main"], 7)], START_NS + 3 * WINDOW_NS, version="1.3.0")
    return client_of(store)


def test_a_deploy_leads_to_its_comparison(given: FlaskClient) -> None:
    answer = get(given, f"/api/v1/deploys?{RANGE}")
    (deploy,) = answer["deploys"]
    assert answer["deploys_total"] == 1
    assert isinstance(deploy.pop("id"), str)
    assert deploy == {
        "service": "shop",
        "version": "1.3.0",
        "replaced": "1.2.3",
        "first_seen_s": START_S + 30,
        "hosts_done": 1,
        "hosts_total": 2,
        "annotation": None,
        "is_return": False,
        "requests_per_s": None,
        "verdict": None,
        "compare": {
            "is_canary": False,
            "a": {"version": "1.2.3", "from_s": START_S, "until_s": START_S + 10},
            "b": {"version": "1.3.0", "from_s": START_S + 30, "until_s": START_S + 40},
        },
    }
    assert get(given, f"/api/v1/deploys?{RANGE}&service=mail")["deploys"] == []
    assert get(client(), f"/api/v1/deploys?{RANGE}")["deploys"] == []
    assert get(given, "/api/v1/deploys?servise=mail", 400)["error"]["hint"] == "did you mean service?"


def test_a_note_is_stored_and_shown(given: FlaskClient) -> None:
    note = {"service": "shop", "version": "1.3.0", "annotation": "new parser <b> \u2028"}
    response = given.post("/api/v1/deploys", json=note)
    assert (response.status_code, response.get_json()) == (200, note)
    (deploy,) = get(given, f"/api/v1/deploys?{RANGE}")["deploys"]
    assert deploy["annotation"] == note["annotation"]


@pytest.mark.parametrize("mimetype", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_is_taken(given: FlaskClient, mimetype: str) -> None:
    response = given.post("/api/v1/deploys", data='{"service":"shop","version":"1.3.0","annotation":"x"}', content_type=mimetype)
    assert response.status_code == 415
    assert "Content-Type" in response.get_json()["error"]["hint"]


@pytest.mark.parametrize(
    "body",
    [
        "", "{", "[]", "null", "7", "[" * 9000, "\xff", '{"service":"shop"}', '{"service":"","version":"1"}', '{"service":"s","version":7}',
        '{"service":"s","version":"1","annotation":["x"]}', '{"service":"s","version":"1","more":"x"}',
        '{"service":"s","version":"\\u0000"}', '{"service":"s","version":"1","requests_per_s":-1}',
        '{"service":"s","version":"1","requests_per_s":NaN}', '{"service":"s","version":"1","requests_per_s":true}',
        '{"service":"s","version":"1","requests_per_s":1%s}' % ("0" * 400), '{"service":"s","version":"1","requests_per_s_before":7}',
        '{"service":"s","version":"\\ud800"}', '{"service":"s","version":"1","annotation":"%s"}' % ("x" * 2001),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given: FlaskClient, body: str) -> None:
    response = given.post("/api/v1/deploys", data=body.encode("latin-1"), content_type="application/json")
    assert response.status_code == 400, response.text
    assert response.get_json()["error"]["message"]


def test_a_large_body_is_not_read(given: FlaskClient) -> None:
    response = given.post("/api/v1/deploys", data=b" " * 20_000, content_type="application/json")
    assert response.status_code == 413


def test_a_deploy_has_an_address_of_its_own_and_says_what_its_report_waits_for(given: FlaskClient) -> None:
    (deploy,) = get(given, f"/api/v1/deploys?{RANGE}")["deploys"]
    answer = get(given, f"/api/v1/deploys/{deploy['id']}")
    assert answer["deploy"] == deploy
    assert answer["hosts"] == [{"host": "a", "first_seen_s": START_S + 30}]
    assert answer["report"] is None
    assert answer["missing"] == "waiting for 120 s of the new version; there are 10 s"
    assert get(given, "/api/v1/deploys/0123", 404)["error"]["message"] == "there is no deploy '0123'"
    assert get(given, f"/api/v1/deploys/{deploy['id']}?from=-1h", 400)


def test_rates_are_told_and_taken_back(given: FlaskClient) -> None:
    note = {"service": "shop", "version": "1.3.0", "annotation": None}
    response = given.post("/api/v1/deploys", json={**note, "requests_per_s": 230})
    assert response.get_json() == {**note, "requests_per_s": 230.0, "requests_per_s_before": 230.0}
    given.post("/api/v1/deploys", json={**note, "annotation": "a note leaves rates alone"})
    (deploy,) = get(given, f"/api/v1/deploys?{RANGE}")["deploys"]
    assert deploy["requests_per_s"] == {"before": 230.0, "after": 230.0}
    given.post("/api/v1/deploys", json={**note, "requests_per_s": 0})
    (deploy,) = get(given, f"/api/v1/deploys?{RANGE}")["deploys"]
    assert deploy["requests_per_s"] is None
