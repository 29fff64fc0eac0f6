# SPDX-License-Identifier: Apache-2.0
"""How much over time: one value per slot, with the share that was lost in it."""

from dataclasses import dataclass

import numpy as np

from server.query.kinds import width_column
from server.query.profile_query import Chosen, ProfileQuery
from server.query.quality import add_accounts
from server.query.selector import Selector
from server.query.slots import Slots
from server.store.protocol import AccountSlot, ColumnInfo, Selection

MOST_CELLS = 5_000_000
"""Series times slots read at once; the store takes twice as many."""


@dataclass(frozen=True, slots=True)
class Line:
    """Values over slots."""

    kind: str
    column: ColumnInfo
    slots: Slots
    values: list[int | None]
    """Sum per slot; None where no window of the selection started."""
    loss: list[float]
    """Share of what was due that was lost, per slot, over the hosts of the selection."""


def line(query: ProfileQuery, selector: Selector, slots: Slots, column_name: str = "") -> Line:
    """Answer how much a selector has in each slot. Raises as ProfileQuery.choose does."""
    chosen = query.choose(selector, slots.range)
    column = width_column(chosen.kind, column_name)
    values = _values(query, chosen, slots, column.name)
    accounts = query.store.accounts(chosen.kind.name, slots.range.from_unix_ns, slots.range.until_unix_ns, slots.step_ns)
    by_slot: list[list[AccountSlot]] = [[] for _ in range(slots.count)]
    for account in accounts:
        at = (account.slot_unix_ns - slots.range.from_unix_ns) // slots.step_ns
        if 0 <= at < slots.count:
            by_slot[at].append(account)
    hosts = None if chosen.is_all else chosen.hosts
    return Line(chosen.kind.name, column, slots, values, [add_accounts(slot, hosts).lost_share for slot in by_slot])


def _values(query: ProfileQuery, chosen: Chosen, slots: Slots, column: str) -> list[int | None]:
    """Add up the series slot by slot, a bounded number of series at a time."""
    sums, seen = [0] * slots.count, np.zeros(slots.count, np.bool_)
    ids = [series.series_id for series in chosen.series]
    room = max(1, MOST_CELLS // slots.count)
    for first in range(0, len(ids), room):
        some = frozenset(ids[first : first + room])
        selection = Selection(chosen.kind.name, slots.range.from_unix_ns, slots.range.until_unix_ns, some, (column,))
        timeline = query.store.timeline(selection, slots.step_ns)
        has_data = timeline.has_data.any(axis=0)
        seen |= has_data
        for slot in np.flatnonzero(has_data).tolist():
            sums[slot] += int(timeline.columns[column][:, slot].sum())
    return [value if has else None for value, has in zip(sums, seen.tolist(), strict=True)]
