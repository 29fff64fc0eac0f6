# SPDX-License-Identifier: Apache-2.0
"""Wait classes that the config shows as others for a service: a worker whose `net` is a connection that it gets its work by waits for work.

What is changed is a class, or the waits with a kernel function (a system call, too) in their stack. Rows of offcpu change their class, and
columns of time are moved, so that the whole stays what it was. All of a service's changes apply to the classes as they were found, none to
what another one made: `net=poll` and `poll=net` swap two. A function comes before a class, and an earlier function before a later one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from agent.collect.kind_rows import KindRows, RowTable
from agent.collect.ragged import Index
from agent.records.drain import Stacks
from agent.records.event_drain import EventColumn

OFFCPU_KIND, TIME_KIND = "offcpu", "time"
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowOwners:
    """Of all rows of a table: an index into `services`, and one that tells processes apart."""

    services: Sequence[bytes]
    service_of_row: Index
    process_of_row: Index


Moves = Mapping[tuple[int, bytes, bytes], int]
"""Ns of time by process, class that was found and class that is shown."""


@dataclass(frozen=True, slots=True)
class ClassOverrides:
    """What the config says; empty for most."""

    by_service: Mapping[bytes, Mapping[bytes, bytes]] = field(default_factory=dict)
    """Of each service named: the class that was found, or the function, and the class it is shown as."""
    functions: Mapping[bytes, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """Start and end of the code of each function named."""

    def kinds(self, table: RowTable, owners: RowOwners) -> tuple[KindRows, ...]:
        """Give the kinds of a window as they are shown."""
        changed = [number for number, service in enumerate(owners.services) if service in self.by_service]
        if not changed:
            return table.kinds
        moves: defaultdict[tuple[int, bytes, bytes], int] = defaultdict(int)
        kinds = [self._waits(kind, table, (owners, changed), moves) if kind.kind == OFFCPU_KIND else kind for kind in table.kinds]
        return tuple(self._time(kind, (owners, changed), moves) if kind.kind == TIME_KIND else kind for kind in kinds)

    def _waits(
        self, kind: KindRows, table: RowTable, whose: tuple[RowOwners, Sequence[int]], moves: defaultdict[tuple[int, bytes, bytes], int]
    ) -> KindRows:
        """Rows with their classes as shown; `moves` takes the time of those that a function has changed."""
        owners, changed = whose
        rows = slice(kind.first, kind.end)
        texts = list(kind.classes)
        shown_of_row = kind.class_of_row.copy()
        ns = next((column.values for column in kind.columns if column.name == "ns"), np.zeros(kind.end - kind.first, np.uint64))
        for number in changed:
            of_service = owners.service_of_row[rows] == number
            for found, shown in self.by_service[owners.services[number]].items():
                if found not in self.functions and found in kind.classes:
                    shown_of_row[of_service & (kind.class_of_row == kind.classes.index(found))] = _place(texts, shown)
            for function, shown in reversed(list(self.by_service[owners.services[number]].items())):
                if places := self.functions.get(function):
                    is_in = of_service & _is_within(table.keys["kernel_stack"][rows], table.stacks, places)
                    shown_of_row[is_in] = _place(texts, shown)
            moved = np.flatnonzero(of_service & self._has_function(table, rows, owners.services[number]))
            keys = np.stack((owners.process_of_row[rows][moved], kind.class_of_row[moved], shown_of_row[moved]))
            distinct, of_row = np.unique(keys, axis=1, return_inverse=True)
            for (process, found_at, shown_at), total in zip(distinct.T.tolist(), _summed(ns[moved], of_row.ravel()), strict=True):
                moves[process, texts[found_at], texts[shown_at]] += total
        return replace(kind, classes=texts, class_of_row=shown_of_row)

    def _has_function(self, table: RowTable, rows: slice, service: bytes) -> npt.NDArray[np.bool_]:
        places = [place for name in self.by_service[service] for place in self.functions.get(name, ())]
        return _is_within(table.keys["kernel_stack"][rows], table.stacks, places)

    def _time(self, kind: KindRows, whose: tuple[RowOwners, Sequence[int]], moves: Moves) -> KindRows:
        owners, changed = whose
        rows = slice(kind.first, kind.end)
        before = {column.name: column.values.copy() for column in kind.columns}
        after = {name: values.copy() for name, values in before.items()}
        row_of_process = {process: row for row, process in enumerate(owners.process_of_row[rows].tolist())}
        for (process, found, shown), ns in moves.items():
            row = row_of_process.get(process)
            if row is not None and _column(found) in before:
                moved = np.minimum(before[_column(found)][row], np.uint64(ns))
                before[_column(found)][row] -= moved  # Not to be moved once more by a change of the whole class.
                after[_column(found)][row] -= moved
                after[_column(shown)][row] += moved
        for number in changed:
            of_service = np.flatnonzero(owners.service_of_row[rows] == number)
            for found, shown in self.by_service[owners.services[number]].items():
                if found not in self.functions:
                    whole = before[_column(found)][of_service]
                    after[_column(found)][of_service] -= whole
                    after[_column(shown)][of_service] += whole
        columns: tuple[EventColumn, ...] = tuple(replace(column, values=after[column.name]) for column in kind.columns)
        return replace(kind, columns=columns)


def _summed(values: U64, groups: Index) -> list[int]:
    """Sums by group; all groups have values."""
    order = np.argsort(groups, kind="stable")
    firsts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sums: list[int] = np.add.reduceat(values[order], firsts).tolist() if len(firsts) else []
    return sums


def _place(texts: list[bytes], text: bytes) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def _is_within(hashes: U64, stacks: Stacks, places: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Whether each stack, by hash, has an address in one of the places."""
    if not len(stacks.hashes) or not places:
        return np.zeros(len(hashes), np.bool_)
    is_in = np.zeros(len(stacks.addresses) + 1, np.int64)
    for start, end in places:
        is_in[1:] |= (stacks.addresses >= np.uint64(start)) & (stacks.addresses < np.uint64(end))
    sums = np.cumsum(is_in)
    has = sums[stacks.bounds[1:]] > sums[stacks.bounds[:-1]]
    at = np.minimum(np.searchsorted(stacks.hashes, hashes), len(stacks.hashes) - 1)
    return np.asarray(has[at] & (stacks.hashes[at] == hashes))


def _column(wait_class: bytes) -> str:
    return f"{wait_class.decode()}_ns"
