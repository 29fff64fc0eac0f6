# SPDX-License-Identifier: Apache-2.0
"""The route of the fleet search, worked out by hand."""

from tests.server.http.clients import RANGE, ROWS, client, get
from tests.server.query.fakes import PERIOD_NS

SEARCH = f"/api/v1/search?{RANGE}"


def test_services_and_functions_that_match() -> None:
    answer = get(client(ROWS), f"{SEARCH}&search=parse")
    (service,) = answer["services"]
    assert (service["service"], service["share"], service["hosts"], service["fleet_share"]) == ("shop", 1.0, 2, 30 / 32)
    assert service["functions"] == [
        {"name": "parse", "binary": "app", "code": 0, "self": 7 * PERIOD_NS, "total": 30 * PERIOD_NS, "services": 1}
    ]
    assert (answer["unit"], answer["total"], answer["services_total"], answer["functions_total"]) == ("ns", 30 * PERIOD_NS, 1, 1)
    assert len(answer["times_s"]) == len(service["trend"]) and answer["step_s"] == 60


def test_by_regex_and_by_this_name_alone() -> None:
    assert [row["service"] for row in get(client(ROWS), f"{SEARCH}&search=^(parse|send)$&mode=regex")["services"]] == ["shop", "mail"]
    assert get(client(ROWS), f"{SEARCH}&search=%3Dpars")["services"] == []


def test_questions_that_make_no_sense() -> None:
    assert get(client(ROWS), SEARCH, 400)["error"]["message"] == "there is nothing to search"
    assert "is not valid" in get(client(ROWS), f"{SEARCH}&search=(&mode=regex", 400)["error"]["message"]
