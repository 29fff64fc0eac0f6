# SPDX-License-Identifier: Apache-2.0
"""Monotonic time becomes UTC in one place."""

from agent.clock import Clock, Moment, next_boundary_ns


class StepClock(Clock):
    """A clock whose readings are given beforehand."""

    def __init__(self, monotonic: list[int], unix: list[int]) -> None:
        self._monotonic = iter(monotonic)
        self._unix = iter(unix)

    def monotonic_ns(self) -> int:
        return next(self._monotonic)

    def unix_ns(self) -> int:
        return next(self._unix)


def test_offset_comes_from_the_tightest_reading() -> None:
    # The second pair of readings is 2 ns apart, its middle is 201; UTC then was 5201.
    clock = StepClock([100, 180, 200, 202, 300, 390], [5999, 5201, 5999])
    offset = clock.offset()
    assert offset.add_ns == 5000
    assert offset.unix_ns(7) == 5007


def test_boundary_is_the_end_of_the_slot_and_never_now() -> None:
    assert next_boundary_ns(13_000_000_000, 10) == 20_000_000_000
    assert next_boundary_ns(20_000_000_000, 10) == 30_000_000_000
    assert next_boundary_ns(19_999_999_999, 10) == 20_000_000_000


def test_a_moment_comes_when_the_wall_clock_says_so_and_no_later_than_it_seemed_to() -> None:
    # It is 4.5 s away. Set ahead, the clock reads it at once; set back an hour, it is over when 4.5 s have gone by.
    clock = StepClock(
        [0, 1_000_000_000, 4_400_000_000, 4_500_000_000], [5_500_000_000, 10_000_000_000, -3_590_100_000_000, -3_590_000_000_000]
    )
    moment = Moment(clock, 10_000_000_000)
    assert moment.left_s() == 0
    assert moment.left_s() == 0.1
    assert moment.left_s() == 0
