# SPDX-License-Identifier: Apache-2.0
"""Lays an unwind table out as the kernel searches it: rows of 4 bytes in pages of 1 KiB of the file's addresses.

    address >> 10 -> page: first row, number of rows
    row = offset in the page << 16 | number of the rule

A rule that reaches into a page stands again at its start, so that a search never leaves the page. Distinct rules are few (some
thousands for all files of a host), so that rows hold their numbers.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.records.unwind import RuleKind, UnwindTable

PAGE_SHIFT = 10
RULES = 1 << 16
MOST_PAGES = 1 << 18
"""Of one table: 256 MiB of addresses. A file of which more is code, or whose code lies further apart, gets none."""
MOST_NEW_RULES = 1 << 12
"""Of one table: the most that was seen is 880 (libaom). A file made up to use all numbers leaves most of them to others."""
_NUMBER_OF_UNSUPPORTED = 1
_PIECE = 1 << 15

U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class PackedTable:
    """Rows in pages; the starts count from the table's own first row."""

    low_page: int
    """Number of the first page."""
    rows: U32
    page_starts: U32
    """First row of each page."""
    page_counts: U32


class RuleNumbers:
    """Numbers for rules, given once and never taken back. Number 0 is NONE, 1 is UNSUPPORTED."""

    def __init__(self, most: int = RULES) -> None:
        self._most = most
        self._rules = np.array([RuleKind.NONE, RuleKind.UNSUPPORTED], np.uint32)
        self._order = np.arange(2)
        self.refused = 0
        """Rules that found no number and became UNSUPPORTED."""

    @property
    def rules(self) -> U32:
        """All rules by number."""
        return self._rules

    def numbers(self, rules: U32, most_new: int = RULES) -> U32:
        """The number of each rule; new ones get the next, as long as there are any, and at most `most_new` of them."""
        at, is_known = self._find(rules)
        if not is_known.all():
            new = np.unique(rules[~is_known])
            room = min(most_new, self._most - len(self._rules))
            self.refused += max(0, len(new) - room)
            self._rules = np.concatenate((self._rules, new[:room]))
            self._order = np.argsort(self._rules, kind="stable")
            at, is_known = self._find(rules)
        found = self._order[at]
        found[~is_known] = _NUMBER_OF_UNSUPPORTED
        return found.astype(np.uint32)

    def _find(self, rules: U32) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Places in order, and whether the rule is there. A search is four times as fast as to sort all rules of a table."""
        ordered = self._rules[self._order]
        at = np.minimum(np.searchsorted(ordered, rules), len(ordered) - 1)
        return at, ordered[at] == rules


def pack_table(table: UnwindTable, numbers: RuleNumbers) -> PackedTable | None:
    """Lay a table out; None when it has no rows, or its addresses take more than MOST_PAGES."""
    addresses = table.addresses
    if not len(addresses):
        return None
    low, high = int(addresses[0]) >> PAGE_SHIFT, int(addresses[-1]) >> PAGE_SHIFT
    if high - low >= MOST_PAGES or high >= 1 << 32:
        return None
    page_starts = np.arange(low, high + 2, dtype=np.uint64) << np.uint64(PAGE_SHIFT)
    first_rows = np.searchsorted(addresses, page_starts)
    is_carried = addresses[np.minimum(first_rows, len(addresses) - 1)] != page_starts
    is_carried[[0, -1]] = False  # before all rows, and behind them
    carried = first_rows[is_carried] - 1
    own = _own_rows(table, numbers)
    rows = np.empty(len(own) + len(carried), np.uint32)
    is_own = np.ones(len(rows), np.bool_)
    is_own[carried + 1 + np.arange(len(carried))] = False
    rows[is_own] = own
    rows[~is_own] = own[carried] & np.uint32(RULES - 1)
    bounds = (first_rows + np.cumsum(is_carried) - is_carried).astype(np.uint32)
    return PackedTable(low, rows, bounds[:-1], np.diff(bounds))


def _own_rows(table: UnwindTable, numbers: RuleNumbers) -> U32:
    """The rows of a table without those at the starts of pages, in pieces: a file may have a million, and is rare."""
    rows = np.empty(len(table.addresses), np.uint32)
    end = len(numbers.rules) + MOST_NEW_RULES
    for first in range(0, len(rows), _PIECE):
        piece = slice(first, first + _PIECE)
        offsets = (table.addresses[piece] & np.uint64((1 << PAGE_SHIFT) - 1)).astype(np.uint32)
        rows[piece] = offsets << np.uint32(16) | numbers.numbers(table.rules[piece], end - len(numbers.rules))
    return rows
