# SPDX-License-Identifier: Apache-2.0
"""The prefix tree of a window's stacks.

Stacks are sorted root first, so that stacks with a common caller lie together. Then a frame is a new node exactly when it, or
a frame further out, differs from the stack before; else it is the node of that stack. Both are running operations over a matrix of
stacks by depth: no loop over frames, and nodes come out in preorder, which compresses best.

    depth      0    1     2       new (*), node number
    stack 1   main  run   read     *1  *2  *3
    stack 2   main  run   write     1   2  *4
    stack 3   main  stop            1  *5
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.ragged import Index, bounds_from_lengths, flat_index

_CELLS = 1 << 16
"""Matrix cells looked at in one go: bounds memory to 3 MB, whatever the number of stacks; with more they do not fit the CPU's cache."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes in preorder; node 0 is the empty stack."""

    parents: Index
    frames: Index
    leaves: Index
    """Node of each stack, in the order the stacks came in."""


def tree_from_stacks(frames: Index, bounds: Index) -> Tree:
    """Build the tree. Stack i is frames[bounds[i]:bounds[i + 1]], leaf first; frames are numbers from 1, stacks are not empty."""
    lengths = np.diff(bounds)
    order = _root_first_order(frames, bounds)
    leaves = np.zeros(len(lengths), np.int64)
    parents, node_frames = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    before, before_nodes, count = np.zeros(0, np.int64), np.zeros(0, np.int64), 1
    depth = int(lengths.max(initial=1))
    step = max(1, _CELLS // depth)
    for first in range(0, len(order), step):
        rows = order[first : first + step]
        matrix = _matrix(frames, bounds[:-1][rows], lengths[rows])
        is_new = _is_new(matrix, before)
        nodes = np.zeros_like(matrix)
        fresh = int(np.count_nonzero(is_new))
        nodes[is_new] = np.arange(count, count + fresh)
        shared = min(len(before_nodes), len(nodes[0]))
        nodes[0, :shared] = np.maximum(nodes[0, :shared], before_nodes[:shared])
        np.maximum.accumulate(nodes, axis=0, out=nodes)
        above = np.zeros_like(nodes)
        above[:, 1:] = nodes[:, :-1]
        parents.append(above[is_new])
        node_frames.append(matrix[is_new])
        leaves[rows] = nodes[np.arange(len(rows)), lengths[rows] - 1]
        before, before_nodes, count = matrix[-1], nodes[-1], count + fresh
    return Tree(np.concatenate(parents), np.concatenate(node_frames), leaves)


def _root_first_order(frames: Index, bounds: Index) -> Index:
    """Sort the stacks by their frames, root first, frequent frames before rare ones, which compresses best.

    Byte strings of big-endian numbers compare like the stacks do.
    """
    uses = np.bincount(frames)
    rank = np.empty(len(uses), ">u4")
    rank[np.argsort(-uses, kind="stable")] = np.arange(1, len(uses) + 1)
    blob = rank[frames[::-1]].tobytes()
    ends = ((int(bounds[-1]) - bounds) * 4).tolist()
    keys = [blob[ends[i + 1] : ends[i]] for i in range(len(ends) - 1)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def _matrix(frames: Index, starts: Index, lengths: Index) -> Index:
    """Lay stacks out root first, one a row, filled up with 0."""
    bounds = bounds_from_lengths(lengths)
    flat = flat_index(starts, lengths, bounds)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    matrix = np.zeros((len(lengths), int(lengths.max())), np.int64)
    matrix[rows, bounds[1:][rows] - 1 - np.arange(bounds[-1])] = frames[flat]
    return matrix


def _is_new(matrix: Index, before: Index) -> npt.NDArray[np.bool_]:
    """Mark the cells that differ, or lie below one that differs, from the stack in the row above."""
    above = np.zeros(matrix.shape, np.int64)
    above[1:] = matrix[:-1]
    shared = min(len(before), matrix.shape[1])
    above[0, :shared] = before[:shared]
    return np.asarray(np.logical_or.accumulate(matrix != above, axis=1) & (matrix != 0))
