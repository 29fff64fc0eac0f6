# SPDX-License-Identifier: Apache-2.0
"""Times as people write them; nonsense is told."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.query.complaint import QueryError
from server.query.timerange import parse_duration_ns, parse_range, parse_time, show_time

NOW_S = 1_700_000_000  # 2023-11-14T22:13:20Z
NOW_NS = NOW_S * 10**9


@pytest.mark.parametrize(
    ("text", "unix_ns"),
    [
        ("now", NOW_NS),
        ("-15m", NOW_NS - 900 * 10**9),
        ("now-15m", NOW_NS - 900 * 10**9),
        ("-1h30m", NOW_NS - 5400 * 10**9),
        ("-1.5s", NOW_NS - 1_500_000_000),
        ("-250ms", NOW_NS - 250_000_000),
        ("-2d", NOW_NS - 172_800 * 10**9),
        ("-1w", NOW_NS - 604_800 * 10**9),
        ("1700000000", NOW_NS),
        ("1700000000.25", NOW_NS + 250_000_000),
        ("1700000000.123456789", NOW_NS + 123_456_789),
        ("2023-11-14T22:13:20Z", NOW_NS),
        ("2023-11-14t22:13:20z", NOW_NS),
        ("2023-11-14 23:13:20+01:00", NOW_NS),
        ("2023-11-14T22:13:20.000000007Z", NOW_NS + 7),
        ("2023-11-14T22:13:20.5-00:30", NOW_NS + 1800 * 10**9 + 500_000_000),
        (" now ", NOW_NS),
    ],
)
def test_times_are_exact(text: str, unix_ns: int) -> None:
    assert parse_time(text, NOW_NS) == unix_ns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a time"),
        ("yesterday", "'yesterday' is not a time"),
        ("15m", "'15m' is not a time"),
        ("-15", "'-15' is not a time"),
        ("-15x", "'-15x' is not a time"),
        ("2023-11-14T22:13:20", "'2023-11-14T22:13:20' does not say its zone"),
        ("2023-02-30T00:00:00Z", "'2023-02-30T00:00:00Z' is not a time: day is out of range for month"),
        ("2023-11-14T25:00:00Z", "'2023-11-14T25:00:00Z' is not a time: hour must be in 0..23"),
        ("1700000000000", "1700000000000 is too large for unix seconds"),
        ("-9999999w", "'-9999999w' is before 1970 or too far away"),
        ("1960-01-01T00:00:00Z", "'1960-01-01T00:00:00Z' is before 1970 or too far away"),
        ("9" * 5000, "9" * 60 + "... is too large for unix seconds"),
        ("-" + "9" * 5000 + "s", "'" + "9" * 60 + "...' is not a length of time"),
        ("nan", "'nan' is not a time"),
        ("1e9", "'1e9' is not a time"),
    ],
)
def test_nonsense_is_told(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_time(text, NOW_NS)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["１７", "-１５m", "１７００-11-14T22:13:20Z"])
def test_other_digits_are_not_numbers(text: str) -> None:
    with pytest.raises(QueryError, match="is not a time"):
        parse_time(text, NOW_NS)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("now", "now", "the range is empty: from 2023-11-14T22:13:20Z is not before until 2023-11-14T22:13:20Z"),
        ("now", "-1h", "the range is empty: from 2023-11-14T22:13:20Z is not before until 2023-11-14T21:13:20Z"),
        ("1700000001", "1700000002", "the range lies in the future: from 2023-11-14T22:13:21Z, now is 2023-11-14T22:13:20Z"),
        ("0", "now", "the range is longer than 5 years"),
    ],
)
def test_ranges_that_make_no_sense_are_told(start: str, end: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_range(start, end, NOW_NS)
    assert str(caught.value) == message


def test_a_range_may_end_in_the_future() -> None:
    assert parse_range("-1m", "1700000060", NOW_NS).length_ns == 120 * 10**9


def test_durations() -> None:
    assert [parse_duration_ns(text) for text in ("10", "10s", "1h30m", "0.5")] == [10**10, 10**10, 5400 * 10**9, 5 * 10**8]
    with pytest.raises(QueryError, match="is not a length of time"):
        parse_duration_ns("soon")


def test_times_are_shown_in_utc() -> None:
    assert show_time(NOW_NS + 999) == "2023-11-14T22:13:20Z"


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with contextlib.suppress(QueryError):
        assert parse_time(text, NOW_NS) >= 0
