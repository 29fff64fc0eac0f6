# SPDX-License-Identifier: Apache-2.0
"""The route of odd hosts."""

from tests.server.http.clients import RANGE, ROWS, client, get


def test_hosts_of_a_service_by_distance() -> None:
    answer = get(client(ROWS), f'/api/v1/odd_hosts?{RANGE}&query=cpu{{service="shop"}}')
    assert (answer["service"], answer["unit"], answer["hosts_total"], answer["odd_total"]) == ("shop", "ns", 2, 0)
    assert answer["is_comparable"] is False
    first = answer["hosts"][0]
    assert first["distance"] == 0.5 and first["functions"][0].keys() == {"name", "binary", "code", "share", "median"}


def test_several_services_are_refused_with_a_hint() -> None:
    answer = get(client(ROWS), f"/api/v1/odd_hosts?{RANGE}", 400)
    assert answer["error"]["hint"] == 'write cpu{service="..."}'
