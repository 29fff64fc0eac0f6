# SPDX-License-Identifier: Apache-2.0
"""A leap of the clock is believed when it lasts, and not before; steps and days off are no leaps."""

from server.store.believed_time import LASTS_NS, MOST_LEAP_NS, BelievedTime
from server.store.sql_store import SqlStore
from tests.support.pushes import MINUTE_UNIX_NS, SECOND_NS, STACK, push_rows

NOW = MINUTE_UNIX_NS
TICK = 20 * SECOND_NS


def test_the_clock_is_believed_within_a_day_of_the_newest_window(store: SqlStore) -> None:
    with store._engine.connect() as connection:
        assert BelievedTime().at(5, connection) == 5  # nothing is stored
    push_rows(store, [("web", "t", STACK, 7)], 1, NOW)
    with store._engine.connect() as connection:
        for leap in (MOST_LEAP_NS, -MOST_LEAP_NS):
            assert BelievedTime().at(NOW + leap, connection) == NOW + leap
            beyond = leap + (1 if leap > 0 else -1)
            assert BelievedTime().at(NOW + beyond, connection) == NOW


def test_a_leap_must_last_without_a_break(store: SqlStore) -> None:
    with store._engine.connect() as connection:
        time, far = BelievedTime(NOW), NOW + 10 * MOST_LEAP_NS
        ticks = LASTS_NS // TICK
        assert {time.at(far + n * TICK, connection) for n in range(ticks)} == {NOW}
        assert time.at(NOW + TICK, connection) == NOW + TICK  # it came back, and counts from the beginning next time
        assert {time.at(far + n * TICK, connection) for n in range(ticks)} == {NOW + TICK}
        assert time.at(far + ticks * TICK, connection) == far + ticks * TICK


def test_two_looks_far_apart_are_no_proof(store: SqlStore) -> None:
    with store._engine.connect() as connection:
        time, far = BelievedTime(NOW), NOW + 10 * MOST_LEAP_NS
        assert [time.at(far + n * LASTS_NS, connection) for n in range(3)] == [NOW] * 3
