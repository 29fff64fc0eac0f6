# SPDX-License-Identifier: Apache-2.0
"""Accounts of hosts over slots: expected = stored + idle + filtered + lost, by reason.

           from                                                    until
    windows │· · ·│ 10 min │   hour   │    day    │ hour │ 10 min │· ·│ windows          (server.store.account_rollups)

The gap between two windows of one agent is found when asked for, or when a unit is made, not when a window arrives: windows come in any
order, and a gap that is filled later is none. It counts at the rate of ticks of the window before it. Where windows are gone, a unit of
ten minutes counts whole where it starts inside.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import sqlalchemy as sa

from emberwatch.v1 import marks_pb2 as marks
from server.store import tables
from server.store.cover import I64, LENGTHS_S, SECOND_NS, Run, chunks, runs
from server.store.facts import ACCOUNTS_BUILT, ACCOUNTS_FLOOR, read_time
from server.store.protocol import AccountSlot
from server.store.segments import (
    Losses,
    Segments,
    gaps,
    joined,
    joined_losses,
    losses_of_rows,
    segments_from_bytes,
    segments_of_windows,
)

MOST_GAPS = 10_000
_STORED_UNDER_A_MARK = 100
_UNIT_NS = LENGTHS_S[-1] * SECOND_NS
_COUNTS = ("expected", "stored", "idle", "filtered", "down")


@dataclass(frozen=True, slots=True)
class Span:
    """What is asked for."""

    kind_id: int
    from_unix_ns: int
    until_unix_ns: int
    step_ns: int
    data_floor_unix_ns: int = 0
    """Before it, rows are being removed and do not count."""


@dataclass(slots=True)
class _Sums:
    expected: int = 0
    stored: int = 0
    idle: int = 0
    filtered: int = 0
    lost: dict[int, int] = field(default_factory=dict)

    def lose(self, reason: int, value: int) -> None:
        if value:
            self.lost[reason] = self.lost.get(reason, 0) + value


def slots(connection: sa.Connection, span: Span) -> list[AccountSlot]:
    """See Store.accounts."""
    kept = _Kept.read(connection, span)
    inside, losses = _read(connection, span, kept.parts(span))
    sums: dict[tuple[int, int], _Sums] = {}
    _add_segments(span, inside, sums)
    for agent, slot, reason, value in _by_slot(span, losses):
        sums.setdefault((agent, slot), _Sums()).lose(reason, value)
    _add_gaps(span, joined([_before(connection, span, kept), inside, _after(connection, span, kept)]), sums)
    agents = {row.id: row for row in connection.execute(sa.select(tables.agents.c.id, tables.agents.c.agent_id, tables.agents.c.host))}
    made = [_slot(agents[agent], span, slot, one) for (agent, slot), one in sums.items()]
    return sorted(made, key=lambda one: (one.host, one.agent_id, one.slot_unix_ns))


def _slot(agent: "sa.Row[int, bytes, str]", span: Span, slot: int, sums: _Sums) -> AccountSlot:
    not_stored = sum(value for reason, value in sums.lost.items() if reason < _STORED_UNDER_A_MARK)
    sums.lose(marks.LOSS_REASON_UNEXPLAINED, sums.expected - sums.stored - sums.idle - sums.filtered - not_stored)
    start, lost = span.from_unix_ns + slot * span.step_ns, dict(sorted(sums.lost.items()))
    return AccountSlot(agent.agent_id, agent.host, start, sums.expected, sums.stored, sums.idle, sums.filtered, lost)


def _add_segments(span: Span, inside: Segments, sums: dict[tuple[int, int], _Sums]) -> None:
    slot = (inside.start - span.from_unix_ns) // span.step_ns
    keys, groups = np.unique(np.stack([inside.agent, slot]), axis=1, return_inverse=True)
    columns = [np.zeros(keys.shape[1], np.int64) for _ in _COUNTS]
    for name, column in zip(_COUNTS, columns, strict=True):
        np.add.at(column, groups.ravel(), getattr(inside, name))
    for agent, number, expected, stored, idle, filtered, down in zip(*keys.tolist(), *(c.tolist() for c in columns), strict=True):
        one = sums[agent, number] = _Sums(expected + down, stored, idle, filtered)
        one.lose(marks.LOSS_REASON_AGENT_DOWN, down)


def _by_slot(span: Span, losses: Losses) -> Iterator[tuple[int, int, int, int]]:
    """(agent, slot, reason, value), each of the first three once."""
    slot = (np.maximum(losses.at, span.from_unix_ns) - span.from_unix_ns) // span.step_ns
    keys, groups = np.unique(np.stack([losses.agent, slot, losses.reason]), axis=1, return_inverse=True)
    values = np.zeros(keys.shape[1], np.int64)
    np.add.at(values, groups.ravel(), losses.value)
    yield from zip(*keys.tolist(), values.tolist(), strict=True)


def _add_gaps(span: Span, ordered: Segments, sums: dict[tuple[int, int], _Sums]) -> None:
    """AGENT_DOWN: ticks that fell due between the end of one window and the start of the next."""
    for gap in islice(gaps(ordered), MOST_GAPS):
        for slot, value in _spread(gap.start, gap.end, gap.ticks, span).items():
            if not value:
                continue  # Of a kind that had nothing due: a slot without an account stays one.
            one = sums.setdefault((gap.agent, slot), _Sums())
            one.expected += value
            one.lose(marks.LOSS_REASON_AGENT_DOWN, value)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Where accounts are taken from: starts of units by length, and windows by ranges of starts."""

    units: Mapping[int, I64]
    windows: Sequence[Run] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    """What there is of a kind."""

    oldest_unix_ns: int
    """Start of the first unit or window of any kind."""
    built_unix_ns: int
    floor_unix_ns: int
    """See facts.ACCOUNTS_BUILT and ACCOUNTS_FLOOR."""
    unready: Mapping[int, I64]

    @classmethod
    def read(cls, connection: sa.Connection, span: Span) -> "_Kept":
        table = tables.account_rollups.c
        firsts = [
            connection.execute(sa.select(sa.func.min(one.c.start_unix_ns))).scalar() for one in (tables.accounts, tables.account_rollups)
        ]
        found: dict[int, list[int]] = {}
        query = sa.select(table.length_s, table.start_unix_ns).where(table.is_ready.is_(False), table.kind_id == span.kind_id)
        for length_s, start in connection.execute(query):
            found.setdefault(length_s, []).append(start)
        return cls(
            oldest_unix_ns=min((int(first) for first in firsts if first is not None), default=0) // _UNIT_NS * _UNIT_NS,
            built_unix_ns=read_time(connection, ACCOUNTS_BUILT),
            floor_unix_ns=read_time(connection, ACCOUNTS_FLOOR),
            unready={length_s: np.array(starts, np.int64) for length_s, starts in found.items()},
        )

    def parts(self, span: Span) -> _Parts:
        """Cut a span: units that lie in one slot of it, the longest first, and windows for the rest."""
        first, last = max(span.from_unix_ns, span.data_floor_unix_ns), span.until_unix_ns
        begin, end = max(first, self.oldest_unix_ns), min(last, self.built_unix_ns)
        units, day_ns = dict[int, I64](), LENGTHS_S[0] * SECOND_NS
        open_: I64 = np.arange(begin // day_ns * day_ns, end, day_ns, dtype=np.int64)
        for length_s, finer_s in zip(LENGTHS_S, (*LENGTHS_S[1:], 0), strict=True):
            length_ns = length_s * SECOND_NS
            slot_of_end = (open_ + length_ns - 1 - span.from_unix_ns) // span.step_ns
            is_used = (open_ >= first) & (open_ + length_ns <= end) & ((open_ - span.from_unix_ns) // span.step_ns == slot_of_end)
            is_used &= ~np.isin(open_, self.unready.get(length_s, np.zeros(0, np.int64)))
            if not finer_s:  # The finest there is where windows are gone.
                is_used |= (open_ >= first) & (open_ < last) & (open_ < self.floor_unix_ns)
            units[length_s] = open_[is_used]
            open_ = open_[~is_used]
            if finer_s:
                open_ = (open_[:, None] + np.arange(0, length_ns, finer_s * SECOND_NS)).ravel()
                open_ = open_[(open_ + finer_s * SECOND_NS > begin) & (open_ < end)]
        windows = runs(open_[open_ >= self.floor_unix_ns], _UNIT_NS)
        windows.append((max(self.built_unix_ns, self.floor_unix_ns), last))
        clipped = [(max(first, start), min(last, until)) for start, until in windows]
        return _Parts(units, [run for run in clipped if run[0] < run[1]])


def _before(connection: sa.Connection, span: Span, kept: _Kept) -> Segments:
    """Of each agent the last stretch before the span."""
    found = [_neighbours(connection, span, tables.accounts.c.start_unix_ns >= kept.floor_unix_ns, is_before=True)]
    edge = -(-min(span.from_unix_ns, kept.floor_unix_ns) // _UNIT_NS) * _UNIT_NS
    if edge > kept.oldest_unix_ns:
        older, _ = _read(connection, span, _Parts(kept.parts(Span(span.kind_id, 0, edge, edge)).units))
        is_last = np.diff(older.agent, append=-1) != 0
        found.insert(0, older.take(np.flatnonzero(is_last & ~np.isin(older.agent, found[0].agent))))
    return joined(found)


def _after(connection: sa.Connection, span: Span, kept: _Kept) -> Segments:
    """Of each agent the first stretch after the span."""
    found, edge = list[Segments](), -(-span.until_unix_ns // _UNIT_NS) * _UNIT_NS
    if edge < kept.floor_unix_ns:
        later, _ = _read(connection, span, _Parts(kept.parts(Span(span.kind_id, edge, kept.floor_unix_ns, kept.floor_unix_ns)).units))
        found.append(later.take(np.flatnonzero(np.diff(later.agent, prepend=-1) != 0)))
    windows = _neighbours(connection, span, tables.accounts.c.start_unix_ns >= kept.floor_unix_ns, is_before=False)
    known = found[0].agent if found else np.zeros(0, np.int64)
    return joined([*found, windows.take(np.flatnonzero(~np.isin(windows.agent, known)))])


def _neighbours(connection: sa.Connection, span: Span, kept: sa.ColumnElement[bool], *, is_before: bool) -> Segments:
    """Of each agent the last window before the span, or the first after it."""
    table, agents = tables.accounts.c, tables.agents.c
    of_agent = sa.select(table.id).where(table.kind_id == span.kind_id, table.agent_row_id == agents.id, kept).limit(1)
    if is_before:
        one = of_agent.where(table.start_unix_ns < span.from_unix_ns).order_by(table.start_unix_ns.desc(), table.id.desc())
    else:
        one = of_agent.where(table.start_unix_ns >= span.until_unix_ns).order_by(table.start_unix_ns, table.id)
    ids = [row_id for (row_id,) in connection.execute(sa.select(one.scalar_subquery()).select_from(tables.agents)) if row_id is not None]
    return segments_of_windows(connection.execute(_window_columns().where(table.id.in_(ids))).all())


def _read(connection: sa.Connection, span: Span, parts: _Parts) -> tuple[Segments, Losses]:
    """Stretches and losses of all agents in some parts of time."""
    found = [_units(connection, span, length_s, starts) for length_s, starts in parts.units.items() if starts.size]
    found += [_windows(connection, span, run) for run in parts.windows]
    return joined([segments for segments, _ in found]), joined_losses([losses for _, losses in found])


def _units(connection: sa.Connection, span: Span, length_s: int, starts: I64) -> tuple[Segments, Losses]:
    table = tables.account_rollups.c
    query = sa.select(table.start_unix_ns, table.segments).where(table.kind_id == span.kind_id, table.length_s == length_s)
    rows = [
        segments_from_bytes(blob, start)
        for some in chunks(table.start_unix_ns, runs(starts, length_s * SECOND_NS))
        for start, blob in connection.execute(query.where(some, table.is_ready.is_(True)))
    ]
    return joined([segments for segments, _ in rows]), joined_losses([losses for _, losses in rows])


def _windows(connection: sa.Connection, span: Span, run: Run) -> tuple[Segments, Losses]:
    accounts, losses = tables.accounts.c, tables.losses.c
    query = _window_columns().where(*_within(accounts, span, run)).order_by(accounts.start_unix_ns, accounts.id)
    lost = sa.select(losses.agent_row_id, losses.start_unix_ns, losses.reason, losses.value).where(*_within(losses, span, run))
    return segments_of_windows(connection.execute(query).all()), losses_of_rows(connection.execute(lost).all())


def _window_columns() -> "sa.Select[Any]":
    table = tables.accounts.c
    columns = (table.agent_row_id, table.start_unix_ns, table.end_unix_ns, table.expected, table.stored, table.idle, table.filtered)
    return sa.select(*columns)


def _within(table: "sa.sql.base.ReadOnlyColumnCollection[str, sa.Column[Any]]", span: Span, run: Run) -> tuple[sa.ColumnElement[bool], ...]:
    return table.kind_id == span.kind_id, table.start_unix_ns >= run[0], table.start_unix_ns < run[1]


def _spread(start: int, end: int, total: int, span: Span) -> Mapping[int, int]:
    """The part of `total`, even over [start, end), that falls in each slot; parts of neighbouring spans add up to it."""
    first = max(start, span.from_unix_ns)
    last = min(end, span.until_unix_ns)
    parts: dict[int, int] = {}
    while first < last:
        slot = (first - span.from_unix_ns) // span.step_ns
        edge = min(last, span.from_unix_ns + (slot + 1) * span.step_ns)
        parts[slot] = total * (edge - start) // (end - start) - total * (first - start) // (end - start)
        first = edge
    return parts
