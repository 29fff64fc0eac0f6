# SPDX-License-Identifier: Apache-2.0
"""Which blocks hold a range: the longest that lie wholly in it, shorter ones at its edges, minutes where nothing longer is ready.

    from                                                                          until
     │ min │ 10 min │   hour   │          day          │   hour   │ 10 min │ min │
     └─────┴────────┴──────────┴───────────────────────┴──────────┴────────┴─────┘

Lengths divide one another and start at multiples of themselves, in UTC. Where an answer is cut into slots, a block lies in one slot or is
not taken. All services of a question are cut alike: a unit that is not ready for one of them is taken in shorter ones for all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from server.store import tables

I64 = npt.NDArray[np.int64]

SECOND_NS = 10**9
MINUTE_NS = 60 * SECOND_NS
LENGTHS_S = (86_400, 3600, 600)
"""Of rollups, the longest first."""
MOST_RUNS = 40
"""Ranges of starts in one statement."""

Run = tuple[int, int]
"""Starts of blocks: [first, last)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A range to be covered. Minutes may reach beyond it, when their entries tell what is inside."""

    from_unix_ns: int
    until_unix_ns: int
    minutes: Run
    slots: tuple[int, int] | None = None
    """Start of the first slot, and the length of all; None for one slot."""
    longest_ns: int = 0
    """No longer blocks than this; 0 for any."""

    def is_in_one_slot(self, starts: I64, length_ns: int) -> npt.NDArray[np.bool_]:
        """Which blocks lie wholly in the range and in one slot."""
        inside: npt.NDArray[np.bool_] = (starts >= self.from_unix_ns) & (starts + length_ns <= self.until_unix_ns)
        if self.slots is not None:
            first, slot_ns = self.slots
            inside &= (starts - first) // slot_ns == (starts - first + (length_ns - 1)) // slot_ns
        return inside


@dataclass(frozen=True, slots=True)
class Cover:
    """Blocks to read: starts of rollups by length in seconds, and of minutes."""

    rollups: Mapping[int, I64]
    minutes: I64


def cover(wanted: Wanted, unready: Mapping[int, I64]) -> Cover:
    """Cut a range into blocks. `unready` holds, by length, starts of rollups that cannot be used."""
    rollups: dict[int, I64] = {}
    first, last = wanted.minutes
    day_ns = LENGTHS_S[0] * SECOND_NS
    units: I64 = np.arange(first // day_ns * day_ns, last, day_ns, dtype=np.int64)
    for length_s, finer_s in zip(LENGTHS_S, (*LENGTHS_S[1:], 60), strict=True):
        length_ns, finer_ns = length_s * SECOND_NS, finer_s * SECOND_NS
        is_used = wanted.is_in_one_slot(units, length_ns) & ~np.isin(units, unready.get(length_s, np.zeros(0, np.int64)))
        if wanted.longest_ns and length_ns > wanted.longest_ns:
            is_used[:] = False
        rollups[length_s] = units[is_used]
        units = (units[~is_used][:, None] + np.arange(0, length_ns, finer_ns)).ravel()
        units = units[(units + finer_ns > first) & (units < last)]
    return Cover(rollups, units[units >= first])


def runs(starts: I64, length_ns: int) -> list[Run]:
    """Starts that follow one another, as ranges."""
    if not starts.size:
        return []
    breaks = np.flatnonzero(np.diff(starts) != length_ns) + 1
    return [(int(part[0]), int(part[-1]) + length_ns) for part in np.split(starts, breaks)]


def chunks(column: sa.ColumnElement[int], ranges: list[Run]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that together choose all rows whose start is in one of the ranges, each small enough for one statement."""
    for at in range(0, len(ranges), MOST_RUNS):
        yield sa.or_(*(sa.and_(column >= first, column < last) for first, last in ranges[at : at + MOST_RUNS]))


def bounds(connection: sa.Connection, kind_id: int) -> Run:
    """Starts of the oldest and, past it, of the newest minute of a kind; equal when there is none."""
    blocks = tables.blocks.c
    ends = [sa.select(find(blocks.start_unix_ns)).where(blocks.kind_id == kind_id).scalar_subquery() for find in (sa.func.min, sa.func.max)]
    oldest, newest = connection.execute(sa.select(*ends)).one()
    return (int(oldest), int(newest) + MINUTE_NS) if oldest is not None else (0, 0)


def unready(connection: sa.Connection, kind_id: int, service_ids: list[int] | None, span: Run) -> dict[int, I64]:
    """Starts of rollups that are due, or not yet, by length."""
    rows = tables.rollups.c
    day_ns = LENGTHS_S[0] * SECOND_NS
    query = sa.select(rows.length_s, rows.start_unix_ns).where(
        rows.is_ready.is_(False), rows.start_unix_ns > span[0] - day_ns, rows.start_unix_ns < span[1], rows.kind_id == kind_id
    )
    if service_ids is not None:
        query = query.where(rows.service_id.in_(service_ids))
    found: dict[int, list[int]] = {}
    for length_s, start in connection.execute(query.distinct()):
        found.setdefault(length_s, []).append(start)
    return {length_s: np.array(starts, np.int64) for length_s, starts in found.items()}
