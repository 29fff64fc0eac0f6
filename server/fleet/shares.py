# SPDX-License-Identifier: Apache-2.0
"""Shares of the largest functions of a service, by group of hosts, kept for a watch: one slot after the other."""

import zlib
from dataclasses import dataclass

import numpy as np

from server.profile.nametable import PathFlag
from server.profile.nametree import NameTree
from server.profile.noise import F64
from server.profile.shift import LAST, Shifts, ShiftWatch
from server.profile.totals import Mask

GROUPS = 8
"""Of hosts, by a hash of their names: a host stays in its group."""
MOST_FUNCTIONS = 64
LEAST_TRACKED = 0.0025
"""Of the service, in a slot: half of the least shift that is told."""

Function = tuple[str, str]
"""Name, and base name of the binary."""


@dataclass(frozen=True, slots=True)
class Shifted:
    """A function whose share shifted."""

    function: Function
    before: float
    after: float
    error: float
    """Half the width of the 95 % interval of the difference."""


def group_of(host: str) -> int:
    """Give the group of a host."""
    return zlib.crc32(host.encode("utf-8", "surrogatepass")) % GROUPS


class ServiceShares:
    """One service. Which functions are followed is chosen anew with each slot: those with the most, the ones that faded leave."""

    def __init__(self) -> None:
        self._watch = ShiftWatch(MOST_FUNCTIONS, GROUPS)
        self._rows: dict[Function, int] = {}
        self._latest = np.zeros(MOST_FUNCTIONS)

    @property
    def functions(self) -> int:
        """How many are followed."""
        return len(self._rows)

    def add(self, tree: NameTree, first: Mask, own: F64) -> list[Shifted]:
        """Take one slot: samples by node of the tree and group, shape (nodes, groups). Gives functions that have shifted."""
        values, whole = np.zeros((MOST_FUNCTIONS, GROUPS)), own.sum(axis=0)
        total = whole.sum()
        if total:
            by_name = _function_totals(tree, first, own)
            share = by_name.sum(axis=1) / total
            # The root is none, and a place without a name is another one in the next build.
            share[(np.array(tree.table.flags[: share.size]) & PathFlag.UNNAMED) != 0] = share[0] = 0.0
            self._choose(tree, share)
            known = {function: number for number, function in enumerate(zip(tree.table.names, tree.table.binaries, strict=True))}
            for function, row in self._rows.items():
                number = known.get(function)
                if number is not None and number < by_name.shape[0]:
                    values[row] = by_name[number]
            # An average that forgets: what had little for a while makes room.
            self._latest += (values.sum(axis=1) / total - self._latest) / LAST
        return self._told(self._watch.add(values, whole))

    def _choose(self, tree: NameTree, share: F64) -> None:
        large = np.flatnonzero(share >= LEAST_TRACKED)
        for number in large[np.argsort(-share[large])][: 2 * MOST_FUNCTIONS].tolist():
            function = tree.table.names[number], tree.table.binaries[number]
            if function in self._rows:
                continue
            row = self._free_row(float(share[number]))
            if row is None:
                return
            self._watch.clear(row)
            self._rows[function] = row
            self._latest[row] = share[number]

    def _free_row(self, share: float) -> int | None:
        """A row that stands for nothing yet, or for the one with the least, when that is much less."""
        if len(self._rows) < MOST_FUNCTIONS:
            return len(self._rows)
        function, row = min(self._rows.items(), key=lambda item: self._latest[item[1]])
        if self._latest[row] > share / 2:
            return None
        del self._rows[function]
        return row

    def _told(self, found: Shifts) -> list[Shifted]:
        names = {row: function for function, row in self._rows.items()}
        columns = zip(found.rows.tolist(), found.before.tolist(), found.after.tolist(), found.error.tolist(), strict=True)
        return [Shifted(names[row], before, after, error) for row, before, after, error in columns if row in names]


def _function_totals(tree: NameTree, first: Mask, own: F64) -> F64:
    """Give totals by name and group, each stack once for a function."""
    totals = np.zeros((len(tree.table), own.shape[1]))
    nodes = np.flatnonzero(first)
    prefix = np.zeros(len(tree) + 1)
    for group in range(own.shape[1]):
        np.cumsum(own[:, group], out=prefix[1:])
        inside = prefix[tree.end[nodes]] - prefix[nodes]
        totals[:, group] = np.bincount(tree.name[nodes], inside, len(tree.table))
    return totals
