# SPDX-License-Identifier: Apache-2.0
"""The time that removing goes by: the clock's, but a leap of it only after it has lasted.

A clock may be years off for a while: before NTP has set it, after a machine was resumed. What is removed then, and the marks that only ever
rise (server.store.facts), could not be had back when it is right again.

    clock     10:00   10:00:20   +400 days   +400 days   10:01      a leap that does not last costs nothing
    believed  10:00   10:00:20   10:00:20    10:00:20    10:01
"""

import sqlalchemy as sa

from server.store import tables

MOST_LEAP_NS = 24 * 3600 * 10**9
"""Between two looks, either way."""
LASTS_NS = 3600 * 10**9
"""After so much time on the far side a leap is believed: a server may have been off for a month."""
_MOST_COUNTED_NS = 300 * 10**9
"""Of the time between two looks: one long one is no proof."""


class BelievedTime:
    """Not thread safe: upkeep looks at it, one step at a time."""

    def __init__(self, believed_unix_ns: int = 0) -> None:
        """What to begin at; 0 for the newest window that is stored, once there is any."""
        self._believed = believed_unix_ns
        self._seen = 0
        self._lasted_ns = 0

    def at(self, now_unix_ns: int, connection: sa.Connection) -> int:
        """What to take for the time, when the clock says `now_unix_ns`."""
        self._believed = self._believed or newest_window(connection)
        if not self._believed:
            return now_unix_ns  # there is nothing to lose
        passed = now_unix_ns - self._seen
        self._seen = now_unix_ns
        is_near = abs(now_unix_ns - self._believed) <= MOST_LEAP_NS
        goes_on = 0 <= passed <= MOST_LEAP_NS
        self._lasted_ns = self._lasted_ns + min(passed, _MOST_COUNTED_NS) if goes_on and not is_near else 0
        if is_near or self._lasted_ns >= LASTS_NS:
            self._believed, self._lasted_ns = now_unix_ns, 0
        return self._believed


def newest_window(connection: sa.Connection) -> int:
    """Start of the newest window, or of the newest minute; 0 when there is none."""
    newest = [connection.execute(sa.select(sa.func.max(table.c.start_unix_ns))).scalar() for table in (tables.batches, tables.blocks)]
    return max(int(start or 0) for start in newest)
