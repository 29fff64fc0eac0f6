# SPDX-License-Identifier: Apache-2.0
"""After five failures in a row a server has its rest; one answer and it is as good as new."""

from server.symbols.breaker import FAILURES, REST_S, Breaker


def test_rest_after_failures_in_a_row() -> None:
    now = [100.0]
    breaker = Breaker(lambda: now[0])
    for _ in range(FAILURES - 1):
        breaker.failed()
    assert breaker.wait_s() == 0.0
    breaker.succeeded()
    for _ in range(FAILURES):
        assert breaker.wait_s() == 0.0
        breaker.failed()
    assert breaker.wait_s() == REST_S
    now[0] += REST_S
    assert breaker.wait_s() == 0.0
    breaker.failed()
    assert breaker.wait_s() == REST_S
    now[0] += REST_S
    breaker.succeeded()
    breaker.failed()
    assert breaker.wait_s() == 0.0
