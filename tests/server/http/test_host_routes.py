# SPDX-License-Identifier: Apache-2.0
"""The route of the heat map."""

from tests.server.http.clients import client_of, get
from tests.server.query.fakes import PERIOD_NS, START_NS, START_S, WINDOW_NS, FakeStore


def test_hosts_by_time() -> None:
    store = FakeStore()
    for at, (a, b) in enumerate([(7, 0), (0, 100), (23, 0), (0, 11)]):
        for host, samples in (("a", a), ("b", b)):
            if samples:
                store.add([("shop", host, "t", ["main"], samples)], START_NS + at * WINDOW_NS)
    given = client_of(store)
    address = f"/api/v1/hostmap?query=cpu%7Bservice%3D%22shop%22%7D&from={START_S}&until={START_S + 40}&step=10s"
    answer = get(given, address)
    assert (answer["hosts"], answer["hosts_total"], answer["unit"], answer["step_s"]) == (["b", "a"], 2, "cores", 10)
    assert answer["values"][0] == [None, 100 * PERIOD_NS / WINDOW_NS, 0, 11 * PERIOD_NS / WINDOW_NS]
    assert get(given, address + "&column=samples")["values"][1] == [0.7, 0, 2.3, None]
    assert get(given, address + "&colum=samples", 400)["error"]["hint"] == "did you mean column?"
