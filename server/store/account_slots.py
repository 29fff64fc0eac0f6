# SPDX-License-Identifier: Apache-2.0
"""Where in time an account counts: one rule for what was due, what was stored and what was lost.

    a window                            counts where it starts
    a unit that lies in one slot        counts there
    a unit that lies in several         where windows are gone; counts in each by how much of it lies there, as if it had been even

Of the last, each part is whole, parts add up to the unit, and what a part had due is the sum of what became of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from server.store.cover import I64
from server.store.segments import Losses, Segments, joined_losses, merged

STORED_UNDER_A_MARK = 100
"""Reasons from here on tell of what was stored all the same."""
_FINE = 20
"""A part of a unit is a fraction of 2^20: a count of it stays below 2^63 up to 2^43, and the fraction is exact to a millisecond."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is asked for."""

    kind_id: int
    from_unix_ns: int
    until_unix_ns: int
    step_ns: int
    data_floor_unix_ns: int = 0
    """Before it, rows are being removed and do not count."""

    def slots_of(self, times: I64) -> I64:
        """Give the slot of each time; what began before the span is in the first."""
        slots: I64 = (np.maximum(times, self.from_unix_ns) - self.from_unix_ns) // self.step_ns
        return slots


def merged_by_slot(span: Span, segments: Segments) -> Segments:
    """One stretch an agent and slot; the gap to a stretch in another slot is in none."""
    return merged([segments], span.slots_of)


def losses_by_slot(span: Span, parts: Sequence[Losses]) -> Losses:
    """One value an agent, slot and reason, at the start of the slot."""
    losses = joined_losses(parts)
    keys, groups = np.unique(np.stack([losses.agent, span.slots_of(losses.at), losses.reason]), axis=1, return_inverse=True)
    values = np.zeros(keys.shape[1], np.int64)
    np.add.at(values, groups.ravel(), losses.value)
    return Losses(keys[0], span.from_unix_ns + keys[1] * span.step_ns, keys[2], values)


def spread_unit(span: Span, segments: Segments, losses: Losses, until_unix_ns: int) -> tuple[Segments, Losses]:
    """Cut the stretches of a unit, one an agent in order, and their losses at the slots of the span; parts outside it are left out.

    Evenly from the start of the first window to the end of the last one, or of the unit at `until_unix_ns`.
    """
    pieces = _Pieces.cut(span, segments.start, np.maximum(np.minimum(segments.end, until_unix_ns), segments.start + 1))
    became = {name: pieces.shares(getattr(segments, name)) for name in ("stored", "idle", "filtered", "down")}
    expected = became["stored"] + became["idle"] + became["filtered"] + pieces.shares(_unexplained(segments, losses))
    of_segment = np.searchsorted(segments.agent, losses.agent)
    which, at = _ranges(pieces.offsets[of_segment], pieces.counts[of_segment])
    lost, reason = pieces.shares(losses.value[which], at), losses.reason[which]
    is_out = reason < STORED_UNDER_A_MARK
    np.add.at(expected, at[is_out], lost[is_out])
    agent, nothing = segments.agent[pieces.whole], np.zeros(pieces.whole.size, np.int64)
    made = Segments(agent, pieces.start, pieces.end, pieces.start, nothing, expected, **became)
    return made, Losses(agent[at], pieces.start[at], reason, lost)


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Stretches cut at slots: `counts` pieces of each from `offsets` on; other columns have an element a piece."""

    counts: I64
    offsets: I64
    whole: I64
    """Which stretch."""
    start: I64
    end: I64
    low: I64
    high: I64
    """From and to which part of the stretch, in 2^-20 of it."""

    @classmethod
    def cut(cls, span: Span, first: I64, last: I64) -> "_Pieces":
        """Cut [first, last) of each stretch."""
        inside = np.maximum(first, span.from_unix_ns), np.minimum(last, span.until_unix_ns)
        slots = span.slots_of(first)
        counts = np.where(inside[0] < inside[1], (inside[1] - 1 - span.from_unix_ns) // span.step_ns - slots + 1, 0)
        whole, slot = _ranges(slots, counts)
        edge = span.from_unix_ns + slot * span.step_ns
        start, end = np.maximum(edge, inside[0][whole]), np.minimum(edge + span.step_ns, inside[1][whole])
        low, high = (((one - first[whole]) << _FINE) // (last - first)[whole] for one in (start, end))
        return cls(counts, np.cumsum(counts) - counts, whole, start, end, low, high)

    def shares(self, values: I64, at: I64 | None = None) -> I64:
        """Give the share of each piece of the value of its stretch; with `at`, of those pieces, which have a value each."""
        of_piece = values[self.whole] if at is None else values
        low, high = (self.low, self.high) if at is None else (self.low[at], self.high[at])
        shares: I64 = ((of_piece * high) >> _FINE) - ((of_piece * low) >> _FINE)
        return shares


def _ranges(firsts: I64, counts: I64) -> tuple[I64, I64]:
    """Give `counts` numbers from each of `firsts` on: which of them, and the number."""
    which: I64 = np.repeat(np.arange(counts.size), counts)
    return which, (firsts - (np.cumsum(counts) - counts))[which] + np.arange(which.size)


def _unexplained(segments: Segments, losses: Losses) -> I64:
    """What was due and became nothing that is known."""
    left: I64 = segments.expected - segments.stored - segments.idle - segments.filtered
    is_out = losses.reason < STORED_UNDER_A_MARK
    np.subtract.at(left, np.searchsorted(segments.agent, losses.agent[is_out]), losses.value[is_out])
    return left


def spread_ticks(start: int, end: int, total: int, span: Span) -> Mapping[int, int]:
    """The part of `total`, even over [start, end), that falls in each slot; parts of neighbouring spans add up to it."""
    first = max(start, span.from_unix_ns)
    last = min(end, span.until_unix_ns)
    parts: dict[int, int] = {}
    while first < last:
        slot = (first - span.from_unix_ns) // span.step_ns
        edge = min(last, span.from_unix_ns + (slot + 1) * span.step_ns)
        parts[slot] = total * (edge - start) // (end - start) - total * (first - start) // (end - start)
        first = edge
    return parts
