# SPDX-License-Identifier: Apache-2.0
"""Accounts of stretches of time: of one window of an agent, or of all its windows in a unit of time, in whole arrays.

    a window                       a unit: sums, and what its neighbours need to know of it
    |start      end|               |start ........ last_start      end|
                                    first window    last window, with last_expected ticks

The gap between two stretches of an agent counts at the rate of ticks of the window before it, so that joining windows to units, and units
to longer ones, comes to the same as looking at all windows at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from server.store.container import Container, StoredColumn, compress, decompress, pack

I64 = npt.NDArray[np.int64]

GAP_NS = 10**9
"""Windows of one run meet to the nanosecond; a restart of an agent that took less is no gap worth a word."""
_TIMES = ("start", "end", "last_start")


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Columns of equal length: one element a stretch."""

    agent: I64
    """Row id."""
    start: I64
    end: I64
    last_start: I64
    last_expected: I64
    expected: I64
    stored: I64
    idle: I64
    filtered: I64
    down: I64
    """Ticks that fell due in gaps inside."""

    def take(self, which: npt.NDArray[np.intp]) -> "Segments":
        """Give some, in that order."""
        return Segments(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Columns of equal length: ticks lost by an agent, by reason."""

    agent: I64
    at: I64
    """When: the start of the window, or of the unit."""
    reason: I64
    value: I64


@dataclass(frozen=True, slots=True)
class Gap:
    """Between two stretches of an agent."""

    agent: int
    start: int
    end: int
    ticks: int
    """Due in it."""


def segments_of_windows(rows: Sequence[Sequence[int]]) -> Segments:
    """Make stretches of windows: (agent, start, end, expected, stored, idle, filtered) of each, in order of start and row id."""
    agent, start, end, expected, stored, idle, filtered = _columns(rows, 7)
    return Segments(agent, start, end, start, expected, expected, stored, idle, filtered, np.zeros(agent.size, np.int64))


def losses_of_rows(rows: Sequence[Sequence[int]]) -> Losses:
    """Make losses of rows (agent, start, reason, value)."""
    return Losses(*_columns(rows, 4))


def _columns(rows: Sequence[Sequence[int]], count: int) -> I64:
    """Turn rows to columns; of 10,000 rows from a database in a tenth of the time that numpy.array takes."""
    flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * count)
    return np.ascontiguousarray(flat.reshape(-1, count).T)


def joined(parts: Sequence[Segments]) -> Segments:
    """All stretches, ordered by agent and start; what starts together stays in order."""
    columns = [np.concatenate([getattr(part, field.name) for part in parts] or [np.zeros(0, np.int64)]) for field in fields(Segments)]
    whole = Segments(*columns)
    return whole.take(np.lexsort((whole.start, whole.agent)))


def joined_losses(parts: Sequence[Losses]) -> Losses:
    """All of them."""
    return Losses(*(np.concatenate([getattr(part, field.name) for part in parts] or [np.zeros(0, np.int64)]) for field in fields(Losses)))


def gaps(ordered: Segments) -> Iterator[Gap]:
    """Give the gaps between stretches of `joined`. Python's integers: ticks times nanoseconds pass 2^63."""
    if not ordered.agent.size:
        return
    is_gap = (ordered.agent[1:] == ordered.agent[:-1]) & (ordered.start[1:] - ordered.end[:-1] > GAP_NS)
    is_gap &= ordered.end[:-1] > ordered.last_start[:-1]
    for at in np.flatnonzero(is_gap).tolist():
        start, end = int(ordered.end[at]), int(ordered.start[at + 1])
        ticks = int(ordered.last_expected[at]) * (end - start) // (start - int(ordered.last_start[at]))
        yield Gap(int(ordered.agent[at]), start, end, ticks)


def merged(parts: Sequence[Segments], group_of: Callable[[I64], I64] | None = None) -> Segments:
    """One stretch an agent, or one an agent and group of starts."""
    ordered = joined(parts)
    if not ordered.agent.size:
        return ordered
    is_first = np.diff(ordered.agent, prepend=-1) != 0
    if group_of is not None:
        is_first |= np.diff(group_of(ordered.start), prepend=-1) != 0
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], ordered.agent.size) - 1
    down = np.add.reduceat(ordered.down, firsts)
    for gap in gaps(replace(ordered, agent=np.cumsum(is_first) - 1)):
        down[gap.agent] += gap.ticks
    return Segments(
        agent=ordered.agent[firsts],
        start=ordered.start[firsts],
        end=ordered.end[lasts],
        last_start=ordered.last_start[lasts],
        last_expected=ordered.last_expected[lasts],
        expected=np.add.reduceat(ordered.expected, firsts),
        stored=np.add.reduceat(ordered.stored, firsts),
        idle=np.add.reduceat(ordered.idle, firsts),
        filtered=np.add.reduceat(ordered.filtered, firsts),
        down=down,
    )


def merged_losses(parts: Sequence[Losses], at: int) -> Losses:
    """One value an agent and reason, all at one time."""
    whole = joined_losses(parts)
    keys, inverse = np.unique((whole.agent << 16) | whole.reason, return_inverse=True)
    value = np.zeros(keys.size, np.int64)
    np.add.at(value, inverse, whole.value)
    return Losses(keys >> 16, np.full(keys.size, at), keys & 0xFFFF, value)


def segments_bytes(segments: Segments, losses: Losses, origin: int) -> bytes:
    """As stored; times from `origin`, the start of the unit, on."""
    columns = [
        StoredColumn(field.name, getattr(segments, field.name) - (origin if field.name in _TIMES else 0)) for field in fields(Segments)
    ]
    columns += [StoredColumn(f"l.{name}", getattr(losses, name)) for name in ("agent", "reason", "value")]
    return compress(pack(columns))


def segments_from_bytes(blob: bytes, origin: int) -> tuple[Segments, Losses]:
    """What `segments_bytes` was given."""
    container = Container(decompress(blob))

    def column(name: str) -> I64:
        return container.plain(name).astype(np.int64)

    segments = Segments(*(column(field.name) + (origin if field.name in _TIMES else 0) for field in fields(Segments)))
    agent = column("l.agent")
    return segments, Losses(agent, np.full(agent.size, origin), column("l.reason"), column("l.value"))
