# SPDX-License-Identifier: Apache-2.0
"""Times of windows: stored as they are, refused when too far off, stamped when they make no sense."""

import pytest

from server.ingest.limits import HOUR_NS, IngestLimits
from server.ingest.window_time import TimeRejected, WindowTime, window_time

NOW = 1_700_000_000 * 10**9
SECOND = 10**9
LENGTH = 10 * SECOND


def judged(start: int, end: int | None = None) -> WindowTime:
    return window_time(start, start + LENGTH if end is None else end, NOW, IngestLimits())


@pytest.mark.parametrize("offset", [0, -5 * SECOND, -30 * HOUR_NS, -48 * HOUR_NS, 600 * SECOND])
def test_honest_times_stay(offset: int) -> None:
    assert judged(NOW + offset) == WindowTime(NOW + offset, NOW + offset + LENGTH, is_suspect=False)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (-48 * HOUR_NS - 1, "48.0 h ago"),
        (600 * SECOND + 1, "10.0 min from now"),
        (2 * HOUR_NS, "set the host's clock"),
        (24 * 365 * HOUR_NS, "525600.0 min from now"),
    ],
)
def test_times_too_far_off_are_refused(offset: int, words: str) -> None:
    with pytest.raises(TimeRejected, match=words):
        judged(NOW + offset)


@pytest.mark.parametrize("start", [0, 2_300_000_000, -1, -(2**62), 946_684_800 * SECOND - 1])
def test_times_before_any_clock_are_stamped_with_the_servers(start: int) -> None:
    assert judged(start) == WindowTime(NOW - LENGTH, NOW, is_suspect=True)


@pytest.mark.parametrize("end", [NOW, NOW - 1, NOW + HOUR_NS + 1, 0])
def test_windows_without_a_sensible_length_are_stamped(end: int) -> None:
    assert judged(NOW, end) == WindowTime(NOW - 1, NOW, is_suspect=True)
