# SPDX-License-Identifier: Apache-2.0
"""How much over time: one value per slot, with the share that was lost in it."""

from dataclasses import dataclass

from server.query.kinds import width_column
from server.query.profile_query import ProfileQuery
from server.query.quality import add_accounts
from server.query.selector import Selector
from server.query.slot_sums import slot_sums
from server.query.slots import Slots
from server.store.protocol import AccountSlot, ColumnInfo


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
    sums = slot_sums(query, selector, slots, (column.name,))
    slots = sums.slots
    values = zip(sums.columns[column.name].tolist(), sums.has_data.tolist(), strict=True)
    accounts = query.store.accounts(chosen.kind.name, slots.range.from_unix_ns, slots.range.until_unix_ns, slots.step_ns)
    by_slot: list[list[AccountSlot]] = [[] for _ in range(slots.count)]
    for account in accounts:
        at = (account.slot_unix_ns - slots.range.from_unix_ns) // slots.step_ns
        if 0 <= at < slots.count:
            by_slot[at].append(account)
    hosts = None if chosen.is_all else chosen.hosts
    loss = [add_accounts(slot, hosts).lost_share for slot in by_slot]
    return Line(chosen.kind.name, column, slots, [value if has else None for value, has in values], loss)
