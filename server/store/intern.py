# SPDX-License-Identifier: Apache-2.0
"""Gives rows of unsigned numbers dense numbers of their own, exactly, and without a Python loop per row.

An open-addressing table with linear probing, probed for all rows at once: each round settles most rows, the rest go on to their next
slot. Rows are compared in full; the hash only tells where to look, and its multipliers are drawn from a seed, so that nobody outside
can aim rows at one slot.

    columns (growable)   0 1 2 … n-1 | rows of the current call, while it runs
    slots (int32)        -1 or the index of a row; at most half full
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from server.errors import LimitExceeded

I64 = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.unsignedinteger]

MOST_ROWS = 1 << 30
_EMPTY = -1


class InternTable:
    """Rows in the order of their first sight. One writer; arrays that were handed out never change."""

    def __init__(self, dtypes: Sequence[npt.DTypeLike], seed: int) -> None:
        """`seed` should be random, and need not be the same after a restart."""
        self._buffers: list[Unsigned] = [np.zeros(16, dtype) for dtype in dtypes]
        draw = np.random.default_rng(seed)
        self._multipliers = draw.integers(0, 1 << 63, len(dtypes) + 1, np.uint64) * np.uint64(2) + np.uint64(1)
        self._slots = np.zeros(0, np.int32)
        self._slots_made_at = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def columns(self, count: int | None = None) -> tuple[Unsigned, ...]:
        """The first `count` rows (default: all), one array a column."""
        end = self._count if count is None else count
        return tuple(buffer[:end] for buffer in self._buffers)

    def append(self, rows: Sequence[npt.NDArray[np.generic]]) -> None:
        """Add rows that are known to be new and distinct, as they come from the disk."""
        self._place(rows)
        self._count += rows[0].size
        self._slots = np.zeros(0, np.int32)

    def truncate(self, count: int) -> None:
        """Forget all rows from `count` on."""
        if count < self._slots_made_at:
            self._slots = np.zeros(0, np.int32)
        else:
            # Rows leave in the reverse of their coming: no older row was ever placed past a slot that empties here.
            self._slots[self._slots >= count] = _EMPTY
        self._count = count

    def intern(self, rows: Sequence[npt.NDArray[np.generic]]) -> I64:
        """The number of each row, given now in the order of `rows` to those not seen before; equal rows get equal numbers."""
        size = rows[0].size
        if not size:
            return np.zeros(0, np.int64)
        self._reserve(size)
        self._place(rows)
        found, slots_won = self._probe(self._count, size)
        return self._settle(found, slots_won)

    def _probe(self, base: int, size: int) -> tuple[I64, I64]:
        """Index of the equal row for each of the rows at base; for those that won a slot: themselves, and which slot."""
        found = np.empty(size, np.int64)
        slots_won = np.empty(size, np.int64)
        open_rows = np.arange(size)
        slots = self._hash(base, base + size)
        mask = self._slots.size - 1
        while open_rows.size:
            entries = self._slots[slots]
            empty = np.flatnonzero(entries == _EMPTY)
            if empty.size:
                claims = open_rows[empty]
                slots_won[claims] = slots[empty]
                # Of several claims on one slot numpy keeps the last written: written backwards, the first row wins.
                self._slots[slots[empty][::-1]] = (base + claims)[::-1]
                entries = self._slots[slots]
            is_same = self._equal(entries, base + open_rows)
            found[open_rows[is_same]] = entries[is_same]
            is_open = ~is_same
            open_rows = open_rows[is_open]
            slots = (slots[is_open] + 1) & mask
        return found, slots_won

    def _settle(self, found: I64, slots_won: I64) -> I64:
        """Close the ranks of the new rows, which lie at base with known ones between them."""
        base = self._count
        new = np.flatnonzero(found == base + np.arange(found.size))
        if not new.size:
            return found
        numbers = np.empty(found.size, np.int64)
        numbers[new] = base + np.arange(new.size)
        self._slots[slots_won[new]] = numbers[new]
        for buffer in self._buffers:
            buffer[base : base + new.size] = buffer[base + new]
        self._count = base + new.size
        is_new = found >= base
        found[is_new] = numbers[found[is_new] - base]
        return found

    def _equal(self, left: npt.NDArray[np.signedinteger], right: I64) -> npt.NDArray[np.bool_]:
        first, *others = self._buffers
        is_same: npt.NDArray[np.bool_] = first[left] == first[right]
        for buffer in others:
            is_same &= buffer[left] == buffer[right]
        return is_same

    def _hash(self, start: int, end: int) -> I64:
        """The first slot of each row: multiplied, folded, multiplied; the upper bits count."""
        mixed = np.zeros(end - start, np.uint64)
        for buffer, multiplier in zip(self._buffers, self._multipliers, strict=False):
            mixed += buffer[start:end].astype(np.uint64) * multiplier
        mixed ^= mixed >> np.uint64(32)
        mixed *= self._multipliers[-1]
        return (mixed >> np.uint64(64 - (self._slots.size.bit_length() - 1))).astype(np.int64)

    def _place(self, rows: Sequence[npt.NDArray[np.generic]]) -> None:
        """Write rows behind the last one, into new buffers when the old are full."""
        end = self._count + rows[0].size
        if end > MOST_ROWS:
            raise LimitExceeded(f"a dictionary of one service would hold more than {MOST_ROWS} entries")
        for index, column in enumerate(rows):
            if self._buffers[index].size < end:
                grown = np.zeros(max(end, 2 * self._buffers[index].size), self._buffers[index].dtype)
                grown[: self._count] = self._buffers[index][: self._count]
                self._buffers[index] = grown
            self._buffers[index][self._count : end] = column

    def _reserve(self, more: int) -> None:
        """Room for `more` rows at half load."""
        needed = 2 * (self._count + more)
        if self._slots.size >= needed:
            return
        self._slots = np.full(1 << max(6, (needed - 1).bit_length()), _EMPTY, np.int32)
        self._slots_made_at = self._count
        open_rows = np.arange(self._count)
        slots = self._hash(0, self._count)
        while open_rows.size:
            empty = self._slots[slots] == _EMPTY
            self._slots[slots[empty]] = open_rows[empty]
            is_open = self._slots[slots] != open_rows
            open_rows = open_rows[is_open]
            slots = (slots[is_open] + 1) & (self._slots.size - 1)
