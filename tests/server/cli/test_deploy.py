# SPDX-License-Identifier: Apache-2.0
"""`emberwatch deploy`, against the real application: the list, a report, a note, a rate, and what is missing."""

import json
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from server.cli.ask import Api
from server.cli.deploy import Asked, deploy_body, render_deploys
from server.errors import BadRequest, ServerError
from server.fleet.reporter import Reporter
from server.http.app import create_app
from server.http.services import AppServices
from tests.server.fleet.rollouts import NEW, OLD, Rollout
from tests.server.query.fakes import START_S

LIST = Asked("", "", None, None, None, str(START_S), 0)
ONE = replace(LIST, service="shop", version="2")


class AppApi(Api):
    """The API of an application in this process."""

    def __init__(self, app: FlaskClient) -> None:
        object.__setattr__(self, "url", "http://test")
        object.__setattr__(self, "app", app)

    app: FlaskClient

    def get(self, path: str, **parameters: str) -> bytes:
        answer = self.app.get(f"/api/v1/{path}", query_string=parameters)
        if answer.status_code != 200:
            raise BadRequest(answer.get_json()["error"]["message"])
        return answer.data

    def post_json(self, path: str, body: Any) -> dict[str, Any]:
        return json.loads(self.app.post(f"/api/v1/{path}", json=body).data)


@pytest.fixture
def rollout() -> Rollout:
    rollout = Rollout()
    rollout.run(30, {"a": "1", "b": "1"}, {"1": OLD, "2": NEW})
    rollout.run(40, {"a": "1", "b": "2"}, {"1": OLD, "2": NEW})
    return rollout


def api_of(rollout: Rollout) -> AppApi:
    return AppApi(create_app(AppServices(rollout.query)).test_client())


def test_the_list_and_the_report(rollout: Rollout) -> None:
    api = api_of(rollout)
    line = render_deploys(deploy_body(api, LIST))
    assert "shop  1 -> 2  1/2 hosts  no report yet" in line
    assert "no report yet: the report is made within a minute" in render_deploys(deploy_body(api, ONE))
    Reporter(rollout.query).step()
    assert "2 functions" in render_deploys(deploy_body(api, LIST))
    text = render_deploys(deploy_body(api, ONE)).splitlines()
    assert text[0].startswith("shop 2 replaced 1 at 2023-11-14T")
    assert text[1].startswith("CPU per host −") and text[1].endswith("2 functions (both versions in the same minutes)")
    assert [line.split()[-2:] for line in text[3:5]] == [["vanished", "legacy"], ["more", "zip"]]


def test_notes_and_rates_are_sent(rollout: Rollout) -> None:
    api = api_of(rollout)
    said = render_deploys(deploy_body(api, replace(ONE, note="new\nparser", requests_per_s=230.0)))
    assert said == "shop 2: new\\x0aparser, 230 requests/s a host\n"
    assert "new parser" in render_deploys(deploy_body(api, LIST))
    assert render_deploys(deploy_body(api, replace(ONE, note=""))) == "shop 2: note taken back\n"


def test_waiting_ends_with_the_report_or_with_what_is_missing(rollout: Rollout) -> None:
    api, reporter = api_of(rollout), Reporter(rollout.query)
    with pytest.raises(ServerError, match="no deploy of shop to 3 since"):
        deploy_body(api, replace(ONE, version="3"))
    with pytest.raises(ServerError, match="no deploy of mail to 2 since"):
        deploy_body(api, replace(ONE, service="mail", wait_s=0.01), lambda _: None)
    found = deploy_body(api, replace(ONE, wait_s=30), lambda _: bool(reporter.step()) and None)
    assert found["report"]["rows"]


def test_an_empty_list_says_so() -> None:
    assert render_deploys(deploy_body(api_of(Rollout()), replace(LIST, start="-7d"))) == "no version replaced another in this range\n"
