# SPDX-License-Identifier: Apache-2.0
"""As many connections are followed as the limit of events has room for."""

import numpy as np
import numpy.typing as npt
import pytest

from agent.profilers.tcp_following import FEWEST, Following, one_in

LIMIT = 1000


@pytest.mark.parametrize(
    ("rate", "now", "wanted"),
    [
        (900, 1, 1),
        (1000, 1, 1),
        (1001, 1, 2),
        (7000, 1, 8),
        (8000, 8, 8),
        (950, 2, 2),  # not calm yet
        (900, 2, 1),
        (3700, 8, 8),  # one in four would be above nine tenths
        (3500, 8, 4),
        (1e9, 1, FEWEST),
        (0, FEWEST, 1),
    ],
)
def test_one_in_so_many(rate: float, now: int, wanted: int) -> None:
    assert one_in(rate, LIMIT, now) == wanted


class Host:
    def __init__(self) -> None:
        self.now_s = 5.0
        self.events = 0.0
        self.told: list[int] = []

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        return np.array([self.events, self.events / 2], np.uint64)

    def now_ns(self) -> int:
        return round(self.now_s * 1e9)

    def run(self, following: Following, rate: float, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s - 1e-9:
            wait_s = following.tick() or 1.0
            self.now_s += wait_s
            self.events += rate * wait_s


def test_a_storm_is_followed_in_part_and_calm_as_a_whole() -> None:
    host = Host()
    following = Following(host.events_per_cpu, host.told.append, LIMIT, host.now_ns)
    host.run(following, 500, 2)
    assert host.told == []
    host.run(following, 15_000, 2)
    assert host.told == [16]
    host.run(following, 100, 2)
    assert host.told == [16, 1]


def test_without_a_limit_all_are_followed() -> None:
    host = Host()
    following = Following(host.events_per_cpu, host.told.append, 0, host.now_ns)
    assert following.tick() is None
    host.run(following, 1e9, 2)
    assert host.told == []
