# SPDX-License-Identifier: Apache-2.0
"""Lays the drains of all kinds out as one table of rows, so that processes, stacks and places are found once for all of them.

rows of cpu | rows of each event kind | second stacks (wakers, holders) of rows that have one
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.ragged import Index, bounds_from_lengths
from agent.records.drain import CPU_KEY, CpuDrain, Stacks
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, WindowDrain
from agent.records.stack_sets import joined_stacks
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.void]

CPU_KIND = "cpu"
_NO_ROWS = np.empty(0, CPU_KEY)


@dataclass(frozen=True, slots=True)
class KindRows:
    """The rows of one kind; `first` to `end` in the table."""

    kind: str
    first: int
    end: int
    columns: tuple[EventColumn, ...]
    objects: Sequence[bytes]
    object_of_row: Index
    classes: Sequence[bytes]
    class_of_row: Index
    second_of_row: Index
    """Row of the table that holds the second stack; -1 for none."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """All rows of a window, those that are only second stacks last."""

    keys: Keys
    counts: U64
    """Events of each row; 0 for second stacks."""
    kind_of_row: Index
    """Index into `kinds`; -1 for second stacks."""
    has_stack: npt.NDArray[np.bool_]
    stacks: Stacks
    kinds: tuple[KindRows, ...]


def row_table(drain: WindowDrain) -> RowTable:
    """The table of a window; kind 0 is cpu."""
    drains = [_cpu_as_events(drain.cpu), *drain.events]
    bounds = bounds_from_lengths(np.array([len(one) for one in drains]))
    total = int(bounds[-1])
    kinds, seconds = [], []
    for number, one in enumerate(drains):
        has_second = _has_second(one)
        second_of_row = np.full(len(one), -1, np.int64)
        second_of_row[has_second] = total + np.arange(np.count_nonzero(has_second))
        total += int(np.count_nonzero(has_second))
        if one.seconds is not None:
            seconds.append(one.seconds[has_second])
        kinds.append(_kind_rows(one, (int(bounds[number]), int(bounds[number + 1])), second_of_row))
    extra = total - int(bounds[-1])
    zeros, minus = np.zeros(extra, np.uint64), np.full(extra, -1, np.int64)
    lengths = np.diff(bounds)
    return RowTable(
        keys=np.concatenate([*(one.keys for one in drains), *seconds]) if total else _NO_ROWS,
        counts=np.concatenate([*(one.columns[0].values for one in drains), zeros]),
        kind_of_row=np.concatenate((np.repeat(np.arange(len(drains)), lengths), minus)),
        has_stack=np.concatenate((np.repeat([one.stacks is not None for one in drains], lengths), np.ones(extra, np.bool_))),
        stacks=joined_stacks([one.stacks for one in drains if one.stacks is not None]),
        kinds=tuple(kinds),
    )


def _cpu_as_events(drain: CpuDrain) -> EventDrain:
    """Its own account is closed elsewhere."""
    columns = (EventColumn("samples", "count", pb.MERGE_SUM, drain.counts),)
    return EventDrain(CPU_KIND, drain.start_ns, drain.end_ns, drain.keys, columns, EventAccount(0, 0), drain.stacks)


def _has_second(drain: EventDrain) -> npt.NDArray[np.bool_]:
    if drain.seconds is None:
        return np.zeros(len(drain), np.bool_)
    seconds = drain.seconds
    parts = [seconds[name] != 0 for name in ("user_stack", "kernel_stack", "user_error", "kernel_error")]
    return np.asarray(np.logical_or.reduce(parts))


def _kind_rows(drain: EventDrain, place: tuple[int, int], second_of_row: Index) -> KindRows:
    zeros = np.zeros(len(drain), np.int64)
    first, end = place
    return KindRows(
        kind=drain.kind,
        first=first,
        end=end,
        columns=drain.columns,
        objects=drain.objects,
        object_of_row=zeros if drain.object_of_row is None else drain.object_of_row,
        classes=drain.classes,
        class_of_row=zeros if drain.class_of_row is None else drain.class_of_row,
        second_of_row=second_of_row,
    )
