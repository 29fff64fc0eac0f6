# SPDX-License-Identifier: Apache-2.0
"""Accounts of hosts over slots: expected = stored + idle + filtered + lost, by reason.

           from                                                    until
    windows │· · ·│ 10 min │   hour   │    day    │ hour │ 10 min │· ·│ windows          (server.store.account_rollups)

The gap between two windows of one agent is found when asked for, or when a unit is made, not when a window arrives: windows come in any
order, and a gap that is filled later is none. It counts at the rate of ticks of the window before it. Where windows are gone, a unit of
ten minutes that no slot holds whole is spread over those it lies in (server.store.account_slots).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import sqlalchemy as sa

from emberwatch.v1 import marks_pb2 as marks
from server.store import tables
from server.store.account_slots import STORED_UNDER_A_MARK, Span, losses_by_slot, merged_by_slot, spread_ticks, spread_unit
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
MOST_ROWS = 50_000
"""Windows held at once, 20 MB; they are added up by agent and slot before more are read."""
_UNIT_NS = LENGTHS_S[-1] * SECOND_NS
_COUNTS = ("expected", "stored", "idle", "filtered", "down")


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
    parts = kept.parts(span)
    inside, losses = _read(connection, span, parts)
    cut = _cut_units(connection, span, parts.cut)
    sums: dict[tuple[int, int], _Sums] = {}
    _add_segments(span, joined([inside, cut.pieces]), sums)
    _add_losses(span, losses_by_slot(span, [losses, cut.losses]), sums)
    _add_gaps(span, joined([_before(connection, span, kept), inside, cut.whole, _after(connection, span, kept)]), sums)
    agents = {row.id: row for row in connection.execute(sa.select(tables.agents.c.id, tables.agents.c.agent_id, tables.agents.c.host))}
    made = [_slot(agents[agent], span, slot, one) for (agent, slot), one in sums.items()]
    return sorted(made, key=lambda one: (one.host, one.agent_id, one.slot_unix_ns))


def _slot(agent: "sa.Row[int, bytes, str]", span: Span, slot: int, sums: _Sums) -> AccountSlot:
    not_stored = sum(value for reason, value in sums.lost.items() if reason < STORED_UNDER_A_MARK)
    sums.lose(marks.LOSS_REASON_UNEXPLAINED, sums.expected - sums.stored - sums.idle - sums.filtered - not_stored)
    start, lost = span.from_unix_ns + slot * span.step_ns, dict(sorted(sums.lost.items()))
    return AccountSlot(agent.agent_id, agent.host, start, sums.expected, sums.stored, sums.idle, sums.filtered, lost)


def _add_segments(span: Span, inside: Segments, sums: dict[tuple[int, int], _Sums]) -> None:
    keys, groups = np.unique(np.stack([inside.agent, span.slots_of(inside.start)]), axis=1, return_inverse=True)
    columns = [np.zeros(keys.shape[1], np.int64) for _ in _COUNTS]
    for name, column in zip(_COUNTS, columns, strict=True):
        np.add.at(column, groups.ravel(), getattr(inside, name))
    for agent, number, expected, stored, idle, filtered, down in zip(*keys.tolist(), *(c.tolist() for c in columns), strict=True):
        one = sums[agent, number] = _Sums(expected + down, stored, idle, filtered)
        one.lose(marks.LOSS_REASON_AGENT_DOWN, down)


def _add_losses(span: Span, losses: Losses, sums: dict[tuple[int, int], _Sums]) -> None:
    columns = (losses.agent, span.slots_of(losses.at), losses.reason, losses.value)
    for agent, slot, reason, value in zip(*(column.tolist() for column in columns), strict=True):
        sums.setdefault((agent, slot), _Sums()).lose(reason, value)


def _add_gaps(span: Span, ordered: Segments, sums: dict[tuple[int, int], _Sums]) -> None:
    """AGENT_DOWN: ticks that fell due between the end of one window and the start of the next."""
    for gap in islice(gaps(ordered), MOST_GAPS):
        for slot, value in spread_ticks(gap.start, gap.end, gap.ticks, span).items():
            if not value:
                continue  # Of a kind that had nothing due: a slot without an account stays one.
            one = sums.setdefault((gap.agent, slot), _Sums())
            one.expected += value
            one.lose(marks.LOSS_REASON_AGENT_DOWN, value)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Where accounts are taken from: starts of units by length, and windows by ranges of starts."""

    units: Mapping[int, I64]
    cut: I64
    """Starts of units of ten minutes that lie in several slots, or in part outside, and have no windows any more."""
    windows: Sequence[Run] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _CutUnits:
    """Units that lie in several slots: their pieces and losses by slot, and whole stretches for what lies between."""

    pieces: Segments
    losses: Losses
    whole: Segments


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
        """Cut a span: units that lie in one slot of it, the longest first, and windows for the rest, or units where these are gone."""
        first, last = max(span.from_unix_ns, span.data_floor_unix_ns), span.until_unix_ns
        begin, end = max(first, self.oldest_unix_ns), min(last, self.built_unix_ns)
        units, day_ns = dict[int, I64](), LENGTHS_S[0] * SECOND_NS
        open_: I64 = np.arange(begin // day_ns * day_ns, end, day_ns, dtype=np.int64)
        for length_s, finer_s in zip(LENGTHS_S, (*LENGTHS_S[1:], 0), strict=True):
            length_ns = length_s * SECOND_NS
            slot_of_end = (open_ + length_ns - 1 - span.from_unix_ns) // span.step_ns
            is_used = (open_ >= first) & (open_ + length_ns <= end) & ((open_ - span.from_unix_ns) // span.step_ns == slot_of_end)
            is_used &= ~np.isin(open_, self.unready.get(length_s, np.zeros(0, np.int64)))
            units[length_s] = open_[is_used]
            open_ = open_[~is_used]
            if finer_s:
                open_ = (open_[:, None] + np.arange(0, length_ns, finer_s * SECOND_NS)).ravel()
                open_ = open_[(open_ + finer_s * SECOND_NS > begin) & (open_ < end)]
        cut = open_[(open_ >= span.data_floor_unix_ns) & (open_ + _UNIT_NS > first) & (open_ < min(last, self.floor_unix_ns))]
        windows = runs(open_[open_ >= self.floor_unix_ns], _UNIT_NS)
        windows.append((max(self.built_unix_ns, self.floor_unix_ns), last))
        clipped = [(max(first, start), min(last, until)) for start, until in windows]
        return _Parts(units, cut, [run for run in clipped if run[0] < run[1]])


def _before(connection: sa.Connection, span: Span, kept: _Kept) -> Segments:
    """Of each agent the last stretch before the span."""
    found = [_neighbours(connection, span, tables.accounts.c.start_unix_ns >= kept.floor_unix_ns, is_before=True)]
    edge = min(span.from_unix_ns, kept.floor_unix_ns) // _UNIT_NS * _UNIT_NS
    if edge < span.data_floor_unix_ns:
        edge += _UNIT_NS  # The unit that the span begins in is not read with it.
    if edge > kept.oldest_unix_ns:
        older, _ = _read(connection, span, kept.parts(Span(span.kind_id, 0, edge, edge)))
        is_last = np.diff(older.agent, append=-1) != 0
        found.insert(0, older.take(np.flatnonzero(is_last & ~np.isin(older.agent, found[0].agent))))
    return joined(found)


def _after(connection: sa.Connection, span: Span, kept: _Kept) -> Segments:
    """Of each agent the first stretch after the span."""
    found, edge = list[Segments](), -(-span.until_unix_ns // _UNIT_NS) * _UNIT_NS
    if edge < kept.floor_unix_ns:
        later, _ = _read(connection, span, kept.parts(Span(span.kind_id, edge, kept.floor_unix_ns, kept.floor_unix_ns)))
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
    found, lost = list[Segments](), list[Losses]()
    for length_s, starts in parts.units.items():
        for _, segments, losses in _units(connection, span, length_s, starts):
            found.append(segments)
            lost.append(losses)
    for run in parts.windows:
        segments_of_run, losses_of_run = _windows(connection, span, run)
        found += segments_of_run
        lost += losses_of_run
    return joined(found), joined_losses(lost)


def _units(connection: sa.Connection, span: Span, length_s: int, starts: I64) -> Iterator[tuple[int, Segments, Losses]]:
    """Each unit there is: its start, and what it holds."""
    table = tables.account_rollups.c
    query = sa.select(table.start_unix_ns, table.segments).where(table.kind_id == span.kind_id, table.length_s == length_s)
    for some in chunks(table.start_unix_ns, runs(starts, length_s * SECOND_NS)):
        for start, blob in connection.execute(query.where(some, table.is_ready.is_(True))):
            yield start, *segments_from_bytes(blob, start)


def _cut_units(connection: sa.Connection, span: Span, starts: I64) -> _CutUnits:
    found = list(_units(connection, span, LENGTHS_S[-1], starts))
    made = [spread_unit(span, segments, losses, start + _UNIT_NS) for start, segments, losses in found]
    return _CutUnits(
        pieces=joined([pieces for pieces, _ in made]),
        losses=losses_by_slot(span, [losses for _, losses in made]),
        whole=joined([segments for _, segments, _ in found]),
    )


def _windows(connection: sa.Connection, span: Span, run: Run) -> tuple[list[Segments], list[Losses]]:
    accounts, losses = tables.accounts.c, tables.losses.c
    # Not by the index of kinds: SQLite would read all windows of the kind in it and sort them.
    query = _window_columns().where(accounts.kind_id + 0 == span.kind_id, *_within(accounts, run))
    query = query.order_by(accounts.start_unix_ns, accounts.id)
    lost = sa.select(losses.agent_row_id, losses.start_unix_ns, losses.reason, losses.value).where(
        losses.kind_id == span.kind_id, *_within(losses, run)
    )
    return (
        [merged_by_slot(span, segments_of_windows(rows)) for rows in _in_parts(connection, query)],
        [losses_by_slot(span, [losses_of_rows(rows)]) for rows in _in_parts(connection, lost)],
    )


def _in_parts(connection: sa.Connection, query: "sa.Select[Any]") -> "Iterator[Sequence[sa.Row[Any]]]":
    return connection.execute(query, execution_options={"yield_per": MOST_ROWS}).partitions()


def _window_columns() -> "sa.Select[Any]":
    table = tables.accounts.c
    columns = (table.agent_row_id, table.start_unix_ns, table.end_unix_ns, table.expected, table.stored, table.idle, table.filtered)
    return sa.select(*columns)


def _within(table: "sa.sql.base.ReadOnlyColumnCollection[str, sa.Column[Any]]", run: Run) -> tuple[sa.ColumnElement[bool], ...]:
    return table.start_unix_ns >= run[0], table.start_unix_ns < run[1]
