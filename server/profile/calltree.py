# SPDX-License-Identifier: Apache-2.0
"""The call tree of a service by address: the only place that turns leaf-first stacks root first.

A stack is a node of the dictionary's prefix tree; walking up from it gives its frames leaf first, so the children of node 0
are the outermost callers. Read level by level from node 0, the same tree gives the stacks root first, and that is all that
turning them takes. A parent always stands before its children.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]

ROOT = 0


def depths_of(parents: Indices, known: Indices) -> Indices:
    """Give the number of frames of each stack; `known` holds those of the first nodes (at least node 0) and is not redone.

    Distances are doubled, so that a stack of 30,000 frames takes 15 rounds and not 30,000.
    """
    first = known.size
    hop, distance = parents[first:].copy(), np.ones(parents.size - first, np.intp)
    active = np.flatnonzero(hop >= first)
    while active.size:
        target = hop[active] - first
        distance[active] += distance[target]
        hop[active] = hop[target]
        active = active[hop[active] >= first]
    return np.concatenate([known, distance + known[hop]])


def levels(depths: Indices, first: int = 0) -> Iterator[Indices]:
    """Yield the nodes from `first` on, one level after another from the outermost in; within a level in ascending order."""
    span = depths[first:]
    if not span.size:
        return
    narrow = span.astype(np.uint16) if int(span.max()) < 1 << 16 else span  # two-byte keys are sorted by radix
    order = np.argsort(narrow, kind="stable")
    bounds = np.flatnonzero(np.diff(span[order])) + 1
    yield from np.split(order + first, bounds)


def with_ancestors(nodes: Indices, parents: npt.NDArray[np.integer]) -> Indices:
    """Give the nodes and all above them, node 0 included, ascending."""
    is_used = np.zeros(parents.size, np.bool_)
    is_used[0] = True
    last_seen = np.empty(parents.size, np.intp)
    current = nodes
    while current.size:
        current = current[~is_used[current]]
        # One of each: the node whose place in the row was written last stays.
        places = np.arange(current.size)
        last_seen[current] = places
        current = current[last_seen[current] == places]
        is_used[current] = True
        current = parents[current]
    return np.flatnonzero(is_used)


def frames_root_first(parents: Indices, frames: npt.NDArray[np.generic], node: int) -> list[int]:
    """Give the frames of one stack from the outermost caller to the leaf; empty for node 0."""
    path: list[int] = []
    while node != ROOT:
        path.append(int(frames[node]))
        node = int(parents[node])
    path.reverse()
    return path
