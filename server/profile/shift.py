# SPDX-License-Identifier: Apache-2.0
"""Tells a shift of a share from its usual wandering: the last minutes against the hour before, held against what that difference
usually is.

    slots of 2 min    |·········· the hour before: 30 slots ··········|·· the last: 6 ··|
    d = share of the last - share of the hour before

Shares are over-dispersed, autocorrelated and have a daily cycle, so no formula knows how far d wanders by itself. Its own past does:
a value of d every ten minutes over three days. The scale is robust (an outlier or a step in the past does not hide the next), never
less than what hosts differ by now (the spread of d over groups of hosts) or what counting samples allows, and how little is known of
it from few hours is paid for with Student's t, an hour counting as one independent value. What was so a day ago at this time is taken
off first. A shift must hold through the window: in both halves of it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.noise import F64

Counts = npt.NDArray[np.float32] | F64

SLOT_S = 120
LAST = 6
BEFORE = 30
LEAST_SHIFT = 0.005
"""Of the service. Smaller ones are not worth a person's minute."""
SURENESS = 5.0
"""Normal deviates. Of 100 services with 40 functions each, about 1.3 million independent looks are taken a week."""
_KEPT_EVERY = 5
"""Slots between two kept values of d."""
_KEPT = 432
_DAY = 144
_AROUND = 2
_LEAST_KEPT = 24
_INDEPENDENT = 6
"""Kept values that make one independent one."""
_HELD = 0.5
"""Of the shift, that each half of the window must show."""
_MAD_TO_SIGMA = 1.4826
_P90_TO_SIGMA = 1 / 1.645
_FEWEST_GROUPS = 3
_PARTS = ((0, LAST // 2), (LAST // 2, LAST), (LAST, LAST + BEFORE))
"""Slots back from now, half open: the newer and the older half of the last, and those before."""


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """What was found, by row; ascending."""

    rows: npt.NDArray[np.intp]
    before: F64
    after: F64
    error: F64
    """Half the width of the 95 % interval of the difference."""


class ShiftWatch:
    """Shares of some rows (functions) in groups of hosts, slot by slot. Values are counts of samples.

    A row that is not known from its beginning on has had 0 before.
    """

    def __init__(self, rows: int, groups: int) -> None:
        self._slot_values = np.zeros((LAST + BEFORE, rows, groups), np.float32)  # counts, exact up to 2^24
        self._slot_whole: F64 = np.zeros((LAST + BEFORE, 1, groups))
        self._kept = np.zeros((_KEPT, rows), np.float32)
        self._count_kept = 0
        self._slots = 0
        self._is_shifted = np.zeros(rows, np.bool_)
        self._sums = [_Sums(self._slot_values, self._slot_whole) for _ in _PARTS]

    @property
    def size_bytes(self) -> int:
        """Memory it takes."""
        return int(self._slot_values.nbytes + self._slot_whole.nbytes + self._kept.nbytes)

    def clear(self, row: int) -> None:
        """Let a row stand for something else, that has had nothing so far."""
        self._slot_values[:, row] = 0
        self._kept[:, row] = 0
        self._is_shifted[row] = False
        for part in self._sums:
            part.values[row] = 0

    def add(self, values: F64, whole: F64) -> Shifts:
        """Take one slot; `values` has shape (rows, groups), `whole` is the total by group (or by row and group). Gives new shifts."""
        whole = np.atleast_2d(whole)
        if whole.shape[0] > self._slot_whole.shape[1]:
            self._slot_whole = np.zeros((LAST + BEFORE, *whole.shape))
            self._sums = [_Sums(self._slot_values, self._slot_whole) for _ in _PARTS]
        at, length = self._slots, LAST + BEFORE
        for part, (first, end) in zip(self._sums, _PARTS, strict=True):
            if first:
                part.take(self._slot_values[(at - first) % length], self._slot_whole[(at - first) % length])
            part.give(self._slot_values[(at - end) % length], self._slot_whole[(at - end) % length])
        self._slot_values[at % length], self._slot_whole[at % length] = values, whole
        self._sums[0].take(self._slot_values[at % length], self._slot_whole[at % length])
        self._slots += 1
        if self._slots < length:
            return _NONE
        newer, older, before = self._sums
        both = newer.and_(older)
        found = self._judged(both)
        if self._slots % _KEPT_EVERY == 0:
            self._kept[self._count_kept % _KEPT] = both.share() - before.share()
            self._count_kept += 1
        return found

    def _judged(self, last: "_Sums") -> Shifts:
        before, after = self._sums[2].share(), last.share()
        shift = after - before
        rest = self._rest(shift)
        is_large = np.abs(rest) >= LEAST_SHIFT
        rows = np.flatnonzero(is_large & ~self._is_shifted)
        self._is_shifted &= np.abs(shift) >= LEAST_SHIFT / 2
        if not rows.size or self._count_kept < _LEAST_KEPT:
            return _NONE
        halves = np.minimum(*[(half.share() - before) * np.sign(rest) for half in self._sums[:2]])
        rows = rows[halves[rows] >= _HELD * np.abs(rest[rows])]
        now = self._error_now(rows, last)
        sureness = self._sureness()
        is_open = np.abs(rest[rows]) >= sureness * now  # what is usual takes longer to work out
        rows, now = rows[is_open], now[is_open]
        scale = np.maximum(self._usual(rows), now)
        is_sure = np.abs(rest[rows]) >= sureness * scale
        rows, scale = rows[is_sure], scale[is_sure]
        self._is_shifted[rows] = True
        return Shifts(rows, before[rows], after[rows], 1.96 * scale)

    def _error_now(self, rows: npt.NDArray[np.intp], last: "_Sums") -> F64:
        """The error of d by what is there now: hosts that differ, and counting."""
        parts = self._sums[2].of_rows(rows), last.of_rows(rows)
        return np.maximum(_spread(*parts), _counting(*parts))

    def _usual(self, rows: npt.NDArray[np.intp]) -> F64:
        """The standard deviation of d in its own past."""
        kept = self._kept[: min(self._count_kept, _KEPT)][:, rows]
        if not rows.size:
            return np.zeros(0)
        off = np.abs(kept - np.median(kept, axis=0))
        return np.maximum(_MAD_TO_SIGMA * np.median(off, axis=0), _P90_TO_SIGMA * np.percentile(off, 90, axis=0))

    def _sureness(self) -> float:
        """Student's t as improbable as the normal deviate SURENESS."""
        freedom = min(self._count_kept, _KEPT) / _INDEPENDENT
        return float((freedom * np.expm1((SURENESS * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom)) ** 0.5)

    def _rest(self, shift: F64) -> F64:
        """What is left of d when what it was a day ago at about this time is taken off, where that was a shift itself."""
        if self._count_kept < _DAY + _AROUND:
            return shift
        around = self._kept[[(self._count_kept - _DAY + off) % _KEPT for off in range(-_AROUND, _AROUND + 1)]]
        usual = np.where(shift > 0, around.max(axis=0), around.min(axis=0))
        is_shift = (np.abs(usual) >= LEAST_SHIFT) & (np.sign(usual) == np.sign(shift))
        return np.where(is_shift, np.sign(shift) * np.maximum(np.abs(shift) - np.abs(usual), 0.0), shift)


class _Sums:
    """Values and totals added up over some slots."""

    def __init__(self, values: Counts, whole: F64) -> None:
        """Empty; for slots like these."""
        self.values: F64 = np.zeros(values.shape[1:])
        self.whole: F64 = np.zeros(whole.shape[1:])

    def take(self, values: Counts, whole: F64) -> None:
        self.values += values
        self.whole += whole

    def give(self, values: Counts, whole: F64) -> None:
        self.values -= values
        self.whole -= whole

    def and_(self, other: "_Sums") -> "_Sums":
        both = _Sums(self.values[None], self.whole[None])
        both.values, both.whole = self.values + other.values, self.whole + other.whole
        return both

    def of_rows(self, rows: npt.NDArray[np.intp]) -> "_Sums":
        some = _Sums(self.values[None, :0], self.whole[None, :0])
        some.values, some.whole = self.values[rows], self.whole if self.whole.shape[0] == 1 else self.whole[rows]
        return some

    def share(self) -> F64:
        """Of all groups together, by row."""
        return _ratio(self.values.sum(axis=1), self.whole.sum(axis=1))


def _spread(before: _Sums, after: _Sums) -> F64:
    """The error of d by how groups of hosts differ in it; 0 of too few groups."""
    is_there = (before.whole > 0) & (after.whole > 0)
    by_group = np.where(is_there, _ratio(after.values, after.whole) - _ratio(before.values, before.whole), 0.0)
    is_there = np.broadcast_to(is_there, by_group.shape)
    count = np.maximum(is_there.sum(axis=1), 1)
    off = np.where(is_there, by_group - (by_group.sum(axis=1) / count)[:, None], 0.0)
    error = np.sqrt((off**2).sum(axis=1) / np.maximum(count - 1, 1) / count)
    return np.where(count >= _FEWEST_GROUPS, error, 0.0)


def _counting(before: _Sums, after: _Sums) -> F64:
    """The error of d by counting alone."""
    wholes = before.whole.sum(axis=1), after.whole.sum(axis=1)
    share = np.clip(_ratio(before.values.sum(axis=1) + after.values.sum(axis=1), wholes[0] + wholes[1]), 0, 1)
    variance: F64 = share * (1 - share) * (1 / np.maximum(wholes[0], 1) + 1 / np.maximum(wholes[1], 1))
    return np.sqrt(variance)


def _ratio(part: F64, whole: F64) -> F64:
    """0 of nothing."""
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)


_NONE = Shifts(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0))
