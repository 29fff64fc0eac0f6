# SPDX-License-Identifier: Apache-2.0
"""All names of the fleet, each once: services share most of them, and a search must look at a name only once.

A tree's name table grows by appending; what was seen of it is kept beside the numbers its names have here.
"""

import threading
import weakref
from collections.abc import Callable

import numpy as np

from server.profile.calltree import Indices
from server.profile.nametable import NameSort, NameTable
from server.profile.totals import Mask

MOST_NAMES = 4_000_000
"""Names of tables that are gone stay; beyond this all are looked at anew."""
_NO_FUNCTION = -1


class NameIndex:
    """Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._of_table: weakref.WeakKeyDictionary[NameTable, Indices] = weakref.WeakKeyDictionary()

    def matches(self, tables: list[NameTable], test: Callable[[str], bool]) -> list[Mask]:
        """Mask, for each table, the names of functions and marks that pass the test; each distinct name is tested once."""
        with self._lock:
            if len(self._names) > MOST_NAMES:
                self._reset()
            numbers = [self._numbers_of(table) for table in tables]
            names = self._names[:]
        is_needed = np.zeros(len(names) + 1, np.bool_)
        for some in numbers:
            is_needed[some] = True
        is_needed[_NO_FUNCTION] = False
        is_match = np.zeros(len(names) + 1, np.bool_)  # The last one stands for what is no function or mark.
        is_match[[n for n in np.flatnonzero(is_needed).tolist() if test(names[n])]] = True
        masks = [is_match[some] for some in numbers]
        for table, mask in zip(tables, masks, strict=True):
            also = [n for n, aliases in list(table.aliases.items()) if n < mask.size and any(test(alias) for alias in aliases)]
            mask[also] = True
        return masks

    def _numbers_of(self, table: NameTable) -> Indices:
        known = self._of_table.get(table, np.zeros(0, np.intp))
        size = len(table)
        if known.size == size:
            return known
        fresh = [
            _NO_FUNCTION if sort == NameSort.LABEL else self._number(name)
            for name, sort in zip(table.names[known.size : size], table.sorts[known.size : size], strict=True)
        ]
        numbers = np.concatenate([known, np.array(fresh, np.intp)])
        self._of_table[table] = numbers
        return numbers

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number
