# SPDX-License-Identifier: Apache-2.0
"""Columns of a selector over time: one number a slot.

Without conditions on rows the numbers come from the index of series, exact to a window. With them rows must be opened, and those of
past minutes lie together in blocks of a minute and more: slots are then whole minutes that start at multiples of their length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import marks_pb2
from server.query.chosen import Chosen
from server.query.merge import Mask, Meter, kept_rows
from server.query.profile_query import ProfileQuery
from server.query.row_filter import keep_of
from server.query.selector import Selector
from server.query.slots import Slots
from server.query.timerange import SECOND_NS, TimeRange
from server.store.cover import LENGTHS_S
from server.store.protocol import Selection
from server.store.push import ValueMerge

U64 = npt.NDArray[np.uint64]

MOST_CELLS = 5_000_000
"""Series times slots times columns read at once."""
_MINUTE_NS = 60 * SECOND_NS


@dataclass(frozen=True, slots=True, eq=False)
class SlotSums:
    """Sums over all rows, or the largest for columns that merge by max."""

    slots: Slots
    """Those asked for, or longer ones from the start of a minute."""
    columns: dict[str, U64]
    has_data: npt.NDArray[np.bool_]
    """A window of the selection started in the slot."""


def slot_sums(query: ProfileQuery, selector: Selector, slots: Slots, columns: Sequence[str]) -> SlotSums:
    """Add up columns slot by slot. Raises as ProfileQuery.choose does, or LimitExceeded."""
    chosen = query.choose(selector, slots.range)
    maxima = frozenset(column.name for column in chosen.kind.columns if column.merge is ValueMerge.MAX)
    if selector.of_rows:
        return _from_rows(query, selector, chosen, _minutes(slots), (columns, maxima))
    return _from_index(query, chosen, slots, columns, maxima)


def with_quiet_slots(query: ProfileQuery, selector: Selector, sums: SlotSums) -> SlotSums:
    """Also give data to slots in which agents of the selection's hosts looked and saw nothing: events are not there all the time."""
    slots, chosen = sums.slots, query.choose(selector, sums.slots.range)
    accounts = query.store.accounts(chosen.kind.name, slots.range.from_unix_ns, slots.range.until_unix_ns, slots.step_ns)
    has_data = sums.has_data.copy()
    hosts = chosen.hosts
    for account in accounts:
        at = (account.slot_unix_ns - slots.range.from_unix_ns) // slots.step_ns
        is_down = not account.stored and marks_pb2.LOSS_REASON_AGENT_DOWN in account.lost
        if 0 <= at < slots.count and account.host in hosts and not is_down:
            has_data[at] = True
    return replace(sums, has_data=has_data)


def _from_index(query: ProfileQuery, chosen: Chosen, slots: Slots, columns: Sequence[str], maxima: frozenset[str]) -> SlotSums:
    sums = {name: np.zeros(slots.count, np.uint64) for name in columns}
    seen = np.zeros(slots.count, np.bool_)
    ids = [series.series_id for series in chosen.series]
    room = max(1, MOST_CELLS // (slots.count * max(1, len(columns))))
    for first in range(0, len(ids), room):
        some = frozenset(ids[first : first + room])
        selection = Selection(chosen.kind.name, slots.range.from_unix_ns, slots.range.until_unix_ns, some, tuple(columns))
        timeline = query.store.timeline(selection, slots.step_ns)
        seen |= timeline.has_data.any(axis=0)
        for name, values in timeline.columns.items():
            if name not in sums:
                continue
            if name in maxima:
                np.maximum(sums[name], values.max(axis=0, initial=0), out=sums[name])
            else:
                sums[name] += values.sum(axis=0, dtype=np.uint64)
    return SlotSums(slots, sums, seen)


def _from_rows(
    query: ProfileQuery, selector: Selector, chosen: Chosen, slots: Slots, wanted: tuple[Sequence[str], frozenset[str]]
) -> SlotSums:
    columns, maxima = wanted
    keep, kept, meter = keep_of(selector), dict[str, Mask | None](), Meter()
    sums = {name: np.zeros(slots.count, np.uint64) for name in columns}
    seen = np.zeros(slots.count, np.bool_)
    selection = replace(chosen.selection(slots.range, tuple(columns)), longest_ns=_longest(slots.step_ns))
    for piece in query.store.select(selection):
        meter.count(piece)
        if piece.service not in kept:
            kept[piece.service] = keep(query.store.dictionary(piece.service))
        rows = kept_rows(piece, kept[piece.service])
        at = min((piece.start_unix_ns - slots.range.from_unix_ns) // slots.step_ns, slots.count - 1)
        seen[at] = True
        for name, values in rows.columns.items():
            if name in maxima:
                sums[name][at] = max(sums[name][at], values.max(initial=0))
            else:
                sums[name][at] += values.sum(dtype=np.uint64)
    return SlotSums(slots, sums, seen)


def _longest(step_ns: int) -> int:
    """Give the longest block that never lies in two slots."""
    lengths = (length_s * SECOND_NS for length_s in LENGTHS_S)
    return next((length for length in lengths if step_ns % length == 0), _MINUTE_NS)


def _minutes(slots: Slots) -> Slots:
    """Slots of whole minutes that start at multiples of their length and are not shorter than those given."""
    step = -(-slots.step_ns // _MINUTE_NS) * _MINUTE_NS
    start = slots.range.from_unix_ns // step * step
    return Slots(TimeRange(start, slots.range.until_unix_ns), step)
