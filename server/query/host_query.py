# SPDX-License-Identifier: Apache-2.0
"""Hosts x time: what each host of a selector has in each slot."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.query.kinds import width_column
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.slot_sums import MOST_CELLS
from server.query.slots import Slots
from server.store.protocol import ColumnInfo, Selection

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HostMap:
    """Values by host and slot."""

    kind: str
    column: ColumnInfo
    slots: Slots
    hosts: tuple[str, ...]
    """The one with the most first."""
    values: F64
    """Shape (hosts, slots): sums. NaN before the first and after the last slot with data of a host: it was not there, or is not yet.
    In between, a slot without data is 0: nothing ran."""

    def rates(self) -> F64:
        """Values a nanosecond: of CPU time, cores."""
        rates: F64 = self.values / np.array(self.slots.lengths_ns(), np.float64)
        return rates


def host_map(query: ProfileQuery, selector: Selector, slots: Slots, column_name: str = "") -> HostMap:
    """Answer what each host has. Raises as ProfileQuery.choose does."""
    chosen = query.choose(selector, slots.range)
    column = width_column(chosen.kind, column_name)
    names = sorted(chosen.hosts)
    number = {name: at for at, name in enumerate(names)}
    host_of = {series.series_id: number[series.labels.get("host", "")] for series in chosen.series}
    values = np.zeros((len(names), slots.count))
    has_data = np.zeros((len(names), slots.count), np.bool_)
    ids, room = sorted(host_of), max(1, MOST_CELLS // slots.count)
    for first in range(0, len(ids), room):
        some = frozenset(ids[first : first + room])
        span = slots.range
        timeline = query.store.timeline(
            Selection(chosen.kind.name, span.from_unix_ns, span.until_unix_ns, some, (column.name,)), slots.step_ns
        )
        rows = np.array([host_of[i] for i in timeline.series_ids.tolist()], np.intp)
        if rows.size:
            np.add.at(values, rows, timeline.columns[column.name].astype(np.float64))
            np.logical_or.at(has_data, rows, timeline.has_data)
    return _ordered(HostMap(chosen.kind.name, column, slots, tuple(names), values), has_data)


def _ordered(found: HostMap, has_data: npt.NDArray[np.bool_]) -> HostMap:
    """Without hosts that had nothing, the largest first, NaN where a host was not there."""
    is_there = np.maximum.accumulate(has_data, axis=1) & np.maximum.accumulate(has_data[:, ::-1], axis=1)[:, ::-1]
    order = np.argsort(-found.values.sum(axis=1), kind="stable")
    order = order[has_data[order].any(axis=1)]
    values = np.where(is_there, found.values, np.nan)[order]
    return HostMap(found.kind, found.column, found.slots, tuple(found.hosts[at] for at in order.tolist()), values)
