# SPDX-License-Identifier: Apache-2.0
"""From frames to the stacks that hold them: an inverted index, so that a search reads no tree.

Stacks are put in depth-first order of their prefix tree. Those that pass through a node are neighbours then, and a frame's stacks are a
few ranges of places, one for each node it stands on:

    place      0  1  2  3  4  5  6 ...
    key        4  0  9  2  7  1  3          numbers of row keys
    frame 17   [-----------)   [--)         low and high, the outer range first
    frame 5          [--)

Ranges of one segment lie in each other or apart. A segment holds a run of keys and never changes; names are no part of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices, with_ancestors

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_LOW_WORD = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The prefix tree of a dictionary and which node each key ends in; see server.store.protocol.ServiceDictionary."""

    node_parents: U32
    node_frames: U32
    key_nodes: U32


@dataclass(frozen=True, slots=True, eq=False)
class StackSegment:
    """The keys first_key..first_key + n."""

    first_key: int
    keys: U32
    """By place."""
    leaves: U32
    """Innermost frame by place."""
    starts: Indices
    """Ranges of frame f are starts[f] up to starts[f + 1]; frames from the end of it on have none."""
    low: U32
    high: U32

    @property
    def end_key(self) -> int:
        """One past the last key."""
        return self.first_key + self.keys.size

    @property
    def size_bytes(self) -> int:
        """Of the arrays."""
        return sum(int(column.nbytes) for column in (self.keys, self.leaves, self.starts, self.low, self.high))

    def ranges(self, frames: Indices) -> tuple[Indices, Indices]:
        """Give the ranges of some frames, one frame after another: index into `frames`, and number of the range."""
        known = np.minimum(frames, self.starts.size - 2)
        counts = np.where(frames == known, self.starts[known + 1] - self.starts[known], 0)
        which = np.repeat(np.arange(frames.size), counts)
        return which, runs(self.starts[known], counts)

    def places(self, ranges: Indices) -> Mask:
        """Mask the places that lie in any of these ranges."""
        depth = np.bincount(self.low[ranges], minlength=self.keys.size + 1)
        depth -= np.bincount(self.high[ranges], minlength=self.keys.size + 1)
        mask: Mask = np.cumsum(depth[:-1], out=depth[:-1]) > 0
        return mask


def runs(starts: Indices, counts: Indices) -> Indices:
    """Give start, start + 1, ... of each run, one run after another."""
    offsets = starts - (np.cumsum(counts) - counts)
    found = np.repeat(offsets, counts)
    found += np.arange(found.size)
    return found


def stack_segment(stacks: Stacks, first_key: int) -> StackSegment:
    """Index the keys from `first_key` on. About 0.3 us for each node that they pass through."""
    ends, parents, frames = stacks.key_nodes[first_key:].astype(np.intp), stacks.node_parents, stacks.node_frames
    if first_key:
        nodes = with_ancestors(ends, parents)
        parents, frames = np.searchsorted(nodes, parents[nodes]).astype(np.uint32), frames[nodes]
        ends = np.searchsorted(nodes, ends)
    place, end = _depth_first(parents)
    key_places = place[ends]
    keys = _sorted_by(key_places).astype(np.uint32)
    before = np.zeros(parents.size + 1, np.uint32)
    np.cumsum(np.bincount(key_places, minlength=parents.size), out=before[1:], dtype=np.uint32)
    starts, at = _by_frame(frames, place)
    low, high = before[at], before[end[at]]
    return StackSegment(first_key, keys + np.uint32(first_key), frames[ends[keys]], starts, low, high)


def _depth_first(parents: U32) -> tuple[Indices, U32]:
    """Give the place of each node in depth-first order, and by place the end of the subtree there."""
    order = list(_levels(parents))
    sizes = [np.ones(order[-1][0].size, np.intp)]
    for _, counts in reversed(order[:-1]):
        total = np.zeros(sizes[-1].size + 1, np.intp)
        np.cumsum(sizes[-1], out=total[1:])
        last = np.cumsum(counts)
        sizes.append(1 + total[last] - total[last - counts])
    place, end = np.empty(parents.size, np.intp), np.empty(parents.size, np.uint32)
    here = np.zeros(1, np.intp)
    for nodes, counts in order:
        mine = sizes.pop()
        place[nodes] = here
        end[here] = here + mine
        if sizes:
            before = np.cumsum(sizes[-1]) - sizes[-1]
            firsts = np.minimum(np.cumsum(counts) - counts, before.size - 1)
            here = before + np.repeat(here + 1 - before[firsts], counts)
    return place, end


def _levels(parents: U32) -> Iterator[tuple[Indices, Indices]]:
    """Give the nodes of each level from the root on, in the order of their parents in the level before; and each one's children."""
    children = _sorted_by(parents[1:])
    above = parents[1:][children]
    children += 1
    is_first = np.ones(above.size, np.bool_)
    np.not_equal(above[1:], above[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    start, count = np.zeros(parents.size, np.uint32), np.zeros(parents.size, np.uint32)
    start[above[firsts]] = firsts
    count[above[firsts]] = np.diff(firsts, append=above.size)
    del above, is_first, firsts
    level = np.zeros(1, np.intp)
    while level.size:
        counts = count[level].astype(np.intp)
        yield level, counts
        level = children[runs(start[level].astype(np.intp), counts)]


def _by_frame(frames: U32, place: Indices) -> tuple[Indices, Indices]:
    """Sort the nodes but the root by frame, then by place. Gives where each frame starts, and the places."""
    packed = _packed(frames[1:], place[1:])
    packed.sort()
    counts = np.bincount(frames[1:])
    starts = np.zeros(max(counts.size, 1) + 1, np.intp)
    np.cumsum(counts, out=starts[1 : counts.size + 1])
    packed &= _LOW_WORD
    return starts, packed.view(np.intp)


def _sorted_by(numbers: npt.NDArray[np.integer]) -> Indices:
    """As argsort of numbers below 2^32, by value then by place: sorting words with the place in them is several times as fast."""
    packed = _packed(numbers, np.arange(numbers.size))
    packed.sort()
    packed &= _LOW_WORD
    return packed.view(np.intp)


def _packed(upper: npt.NDArray[np.integer], lower: Indices) -> U64:
    packed = upper.astype(np.uint64)
    packed <<= _WORD
    packed |= lower.view(np.uint64)
    return packed
