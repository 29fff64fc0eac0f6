# SPDX-License-Identifier: Apache-2.0
"""When a window was: as it says, refused when that is too far off, or the server's own time when it makes no sense at all."""

from dataclasses import dataclass

from server.errors import ServerError
from server.ingest.limits import IngestLimits

FIRST_SENSIBLE_UNIX_NS = 946_684_800 * 10**9
"""Year 2000: a clock before it was never set."""


class TimeRejected(ServerError):
    """The window lies too far in the past or in the future."""


@dataclass(frozen=True, slots=True)
class WindowTime:
    """Half open, UTC."""

    start_unix_ns: int
    end_unix_ns: int
    is_suspect: bool


def window_time(start_unix_ns: int, end_unix_ns: int, now_unix_ns: int, limits: IngestLimits) -> WindowTime:
    """The window's time by the server's clock. Raises TimeRejected.

    A time that makes no sense (before 2000, or a window that ends before it starts or lasts too long) says nothing about when the
    samples were taken: they are kept, as if the window had ended now.
    """
    length = end_unix_ns - start_unix_ns
    if start_unix_ns < FIRST_SENSIBLE_UNIX_NS or not 0 < length <= limits.window_ns:
        length = length if 0 < length <= limits.window_ns else 1
        return WindowTime(now_unix_ns - length, now_unix_ns, is_suspect=True)
    off = start_unix_ns - now_unix_ns
    if off < -limits.past_ns:
        raise TimeRejected(f"the window started {-off / 3.6e12:.1f} h ago; windows are taken up to {limits.past_ns / 3.6e12:.0f} h late")
    if off > limits.future_ns:
        raise TimeRejected(
            f"the window starts {off / 6e10:.1f} min from now; the limit is {limits.future_ns / 6e10:.0f} min: set the host's clock"
        )
    return WindowTime(start_unix_ns, end_unix_ns, is_suspect=False)
