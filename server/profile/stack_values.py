# SPDX-License-Identifier: Apache-2.0
"""Which stacks hold functions that are meant, and what each of these comes to: self, and total with each stack counted once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.stack_index import U32, U64, Mask, StackSegment


@dataclass(frozen=True, slots=True, eq=False)
class MeantFrames:
    """Functions that are meant and the frames they stand in: pairs, each once, by name and then frame."""

    names: Indices
    frames: Indices
    innermost: Indices
    """Name by frame, of the innermost of the calls inlined there."""
    table_size: int
    """Number of names."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSums:
    """One row for each function that is meant and has a value."""

    name: Indices
    own: U64
    total: U64


def meant_frames(is_meant: Mask, bounds: npt.NDArray[np.integer], names: Indices) -> MeantFrames:
    """Find the frames of the masked names; frame i has the names bounds[i] up to bounds[i + 1], one at least, the outermost first."""
    parts = np.flatnonzero(is_meant[names])
    frames = np.searchsorted(bounds, parts, side="right") - 1
    pairs = np.unique((names[parts] << 32) | frames)
    return MeantFrames(pairs >> 32, pairs & 0xFFFFFFFF, names[bounds[1:] - 1], is_meant.size)


class HeldStacks:
    """The stacks of some segments that hold a frame that is meant."""

    def __init__(self, segments: Sequence[StackSegment], meant: MeantFrames, key_count: int) -> None:
        """Keys from `key_count` on are left out: segments may know more than the question."""
        self._meant, self._key_count = meant, key_count
        frames = np.unique(meant.frames)
        self._parts = [(segment, inside) for segment in segments if (inside := self._inside(segment, frames)).any()]

    def _inside(self, segment: StackSegment, frames: Indices) -> Mask:
        _, ranges = segment.ranges(frames)
        inside = segment.places(ranges)
        if segment.end_key > self._key_count:
            inside &= segment.keys < self._key_count
        return inside

    def mask(self) -> Mask:
        """Mask their keys."""
        mask = np.zeros(self._key_count, np.bool_)
        for segment, inside in self._parts:
            mask[segment.keys[inside]] = True
        return mask

    def sums(self, values: U64) -> FunctionSums:
        """Add up each function; `values` are by key."""
        meant = self._meant
        own, total = np.zeros(meant.table_size, np.uint64), np.zeros(meant.table_size, np.uint64)
        by_leaf = np.zeros(meant.innermost.size, np.uint64)
        for segment, inside in self._parts:
            held = values[segment.keys[inside]]
            np.add.at(by_leaf, segment.leaves[inside].astype(np.intp), held)
            names, sums = self._totals(segment, inside, held)
            np.add.at(total, names, sums)
        np.add.at(own, meant.innermost, by_leaf)
        found = np.unique(meant.names)
        found = found[total[found] > 0]
        return FunctionSums(found, own[found], total[found])

    def _totals(self, segment: StackSegment, inside: Mask, held: U64) -> tuple[Indices, U64]:
        """Give names, each any number of times, with values that add up to the name's total in a segment."""
        which, ranges = segment.ranges(self._meant.frames)
        names, low, high = _outermost(self._meant.names[which], segment.low[ranges], segment.high[ranges])
        # How many of the held ones stand before each place, and what they come to.
        before = np.zeros(inside.size + 1, np.int32)
        np.cumsum(inside, out=before[1:], dtype=np.int32)
        sums = np.zeros(held.size + 1, np.uint64)
        np.cumsum(held, out=sums[1:])
        return names, sums[before[high]] - sums[before[low]]


def _outermost(names: Indices, low: U32, high: U32) -> tuple[Indices, Indices, U32]:
    """Of the ranges of each name (names ascending) keep those that lie in no other: a stack counts once if the function calls itself."""
    packed = (names << 32) | low
    if np.any(packed[1:] < packed[:-1]):  # Several frames of a name: sorted runs, which a stable sort merges.
        order = np.argsort(packed, kind="stable")
        packed, high = packed[order], high[order]
    is_new = np.ones(packed.size, np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    packed, ends = packed[starts], np.maximum.reduceat(high, starts)
    # What a name reaches to is below what the next one begins with.
    reach = np.maximum.accumulate((packed >> 32 << 32) | ends)
    is_outer = np.ones(packed.size, np.bool_)
    np.greater_equal(packed[1:], reach[:-1], out=is_outer[1:])
    kept = packed[is_outer]
    return kept >> 32, kept & 0xFFFFFFFF, ends[is_outer]
