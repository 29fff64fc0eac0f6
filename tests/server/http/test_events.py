# SPDX-License-Identifier: Apache-2.0
"""The route of events."""

from dataclasses import replace

from server.fleet.events import keep_new
from tests.server.fleet.test_events import EVENT
from tests.server.http.clients import RANGE, client, client_of, get
from tests.server.query.fakes import START_S, FakeStore


def test_events_of_a_range_and_a_service() -> None:
    store = FakeStore()
    late = replace(EVENT, event_id="e2", service="mail", at_unix_ns=EVENT.at_unix_ns + 7 * 10**9, deploy_id="ab", version="2")
    keep_new(store.documents, [EVENT, late])
    given = client_of(store)
    answer = get(given, f"/api/v1/events?{RANGE}")
    assert [event["id"] for event in answer["events"]] == ["e2", "e1"] and answer["events_total"] == 2
    event = answer["events"][1]
    assert (event["cause"], event["function"], event["at_s"], event["deploy_id"], event["explains"]) == (
        "none",
        "parse",
        START_S,
        None,
        ["scan"],
    )
    assert event["compare"]["a"] == {"query": "cpu{}", "from_s": START_S, "until_s": START_S + 720}
    assert [event["id"] for event in get(given, f"/api/v1/events?{RANGE}&service=mail")["events"]] == ["e2"]
    assert get(given, f"/api/v1/events?from={START_S + 1}&until={START_S + 5}")["events"] == []
    assert get(client(), f"/api/v1/events?{RANGE}")["events_total"] == 0
    assert get(given, "/api/v1/events?serivce=x", 400)["error"]["hint"] == "did you mean service?"
