# SPDX-License-Identifier: Apache-2.0
"""Accounts of hosts over slots: expected = stored + idle + filtered + lost, by reason.

What agents said is summed by the database. The gap between two windows of one agent is found when asked for, not when a window arrives:
windows come in any order, and a gap that is filled later is none. It counts at the rate of ticks of the window before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from emberwatch.v1 import marks_pb2 as marks
from server.store import tables
from server.store.protocol import AccountSlot

GAP_NS = 10**9
"""Windows of one run meet to the nanosecond; a restart of an agent that took less is no gap worth a word."""
MOST_GAPS = 10_000
_STORED_UNDER_A_MARK = 100


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
    sums: dict[tuple[int, int], _Sums] = {}
    _add_accounts(connection, span, sums)
    _add_losses(connection, span, sums)
    _add_gaps(connection, span, sums)
    agents = {row.id: row for row in connection.execute(sa.select(tables.agents.c.id, tables.agents.c.agent_id, tables.agents.c.host))}
    made = [_slot(agents[agent], span, slot, one) for (agent, slot), one in sums.items()]
    return sorted(made, key=lambda one: (one.host, one.agent_id, one.slot_unix_ns))


def _slot(agent: "sa.Row[int, bytes, str]", span: Span, slot: int, sums: _Sums) -> AccountSlot:
    not_stored = sum(value for reason, value in sums.lost.items() if reason < _STORED_UNDER_A_MARK)
    sums.lose(marks.LOSS_REASON_UNEXPLAINED, sums.expected - sums.stored - sums.idle - sums.filtered - not_stored)
    start, lost = span.from_unix_ns + slot * span.step_ns, dict(sorted(sums.lost.items()))
    return AccountSlot(agent.agent_id, agent.host, start, sums.expected, sums.stored, sums.idle, sums.filtered, lost)


def _add_accounts(connection: sa.Connection, span: Span, sums: dict[tuple[int, int], _Sums]) -> None:
    table = tables.accounts.c
    slot = _slot_number(table.start_unix_ns, span)
    totals = [sa.func.sum(column) for column in (table.expected, table.stored, table.idle, table.filtered)]
    query = sa.select(table.agent_row_id, slot, *totals).where(*_within(table, span)).group_by(table.agent_row_id, slot)
    for agent, number, expected, stored, idle, filtered in connection.execute(query):
        sums[agent, number] = _Sums(int(expected), int(stored), int(idle), int(filtered))


def _add_losses(connection: sa.Connection, span: Span, sums: dict[tuple[int, int], _Sums]) -> None:
    table = tables.losses.c
    slot = _slot_number(table.start_unix_ns, span)
    query = sa.select(table.agent_row_id, slot, table.reason, sa.func.sum(table.value)).where(*_within(table, span))
    for agent, number, reason, value in connection.execute(query.group_by(table.agent_row_id, slot, table.reason)):
        sums.setdefault((agent, number), _Sums()).lose(reason, int(value))


def _add_gaps(connection: sa.Connection, span: Span, sums: dict[tuple[int, int], _Sums]) -> None:
    """AGENT_DOWN: ticks that fell due between the end of one window and the start of the next."""
    for row in connection.execute(_gaps(connection, span)):
        agent, start, end = row.agent_row_id, row.gap_start, row.gap_end
        total = row.ticks * (end - start) // row.window_ns
        for slot, value in _spread(start, end, total, span).items():
            if not value:
                continue  # Of a kind that had nothing due: a slot without an account stays one.
            one = sums.setdefault((agent, slot), _Sums())
            one.expected += value
            one.lose(marks.LOSS_REASON_AGENT_DOWN, value)


def _gaps(connection: sa.Connection, span: Span) -> "sa.Select[int, int, int, int, int]":
    """(agent, start, end, ticks expected in the window before, its length) of each gap that touches the span."""
    table = tables.accounts.c
    columns = (table.id, table.agent_row_id, table.start_unix_ns, table.end_unix_ns, table.expected)
    neighbours = sa.select(*columns).where(table.id.in_(_neighbours(connection, span)))
    rows = sa.union_all(sa.select(*columns).where(*_within(table, span)), neighbours).subquery().c

    def before(column: sa.ColumnElement[int], name: str) -> sa.ColumnElement[int]:
        return sa.func.lag(column).over(partition_by=rows.agent_row_id, order_by=(rows.start_unix_ns, rows.id)).label(name)

    last = (before(rows.end_unix_ns, "gap_start"), before(rows.start_unix_ns, "last_start"), before(rows.expected, "ticks"))
    gaps = sa.select(rows.agent_row_id, rows.start_unix_ns.label("gap_end"), *last).subquery().c
    query = sa.select(gaps.agent_row_id, gaps.gap_start, gaps.gap_end, gaps.ticks, (gaps.gap_start - gaps.last_start).label("window_ns"))
    return query.where(gaps.gap_end - gaps.gap_start > GAP_NS, gaps.gap_start > gaps.last_start).limit(MOST_GAPS)


def _neighbours(connection: sa.Connection, span: Span) -> list[int]:
    """Of each agent: the last window before the span and the first after it."""
    table, agents = tables.accounts.c, tables.agents.c
    of_agent = sa.select(table.id).where(table.kind_id == span.kind_id, table.agent_row_id == agents.id).limit(1)
    before = of_agent.where(table.start_unix_ns < span.from_unix_ns).order_by(table.start_unix_ns.desc(), table.id.desc())
    after = of_agent.where(table.start_unix_ns >= span.until_unix_ns).order_by(table.start_unix_ns, table.id)
    both = sa.select(before.scalar_subquery(), after.scalar_subquery()).select_from(tables.agents)
    return [row_id for row in connection.execute(both) for row_id in row if row_id is not None]


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


def _slot_number(start: sa.ColumnElement[int], span: Span) -> sa.ColumnElement[int]:
    # Written out: both are constants of the question, and a bound one would be another expression in GROUP BY to PostgreSQL.
    return (start - sa.literal_column(str(span.from_unix_ns))) // sa.literal_column(str(span.step_ns))


def _within(table: sa.sql.base.ReadOnlyColumnCollection[str, sa.Column[Any]], span: Span) -> tuple[sa.ColumnElement[bool], ...]:
    start = table.start_unix_ns
    return table.kind_id == span.kind_id, start >= max(span.from_unix_ns, span.data_floor_unix_ns), start < span.until_unix_ns
