# SPDX-License-Identifier: Apache-2.0
"""Turns a batch from layout 1 into layout 2 and back (see StackTable in batch.proto).

What follows a frame in a stack is mostly one of very few frames, whatever the stack: layout 2 says these few once for each frame,
and then for each node only which of them it is. Where a stack ends need not be said again by the keys.

    frames under each frame          1 main: run        2 run: read, write        3 read: -
    nodes, as choices among them     main 0, run 0, read 0, write 1
"""

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.columns import ColumnError, decode_column, encode_ascending, encode_column

Index = npt.NDArray[np.int64]

PLAIN, PACKED = 1, 2
_MOST_DEPTH = 1024
_MOST_FRAMES = 1 << 26


def pack(batch: pb.FoldedBatch) -> bool:
    """Pack `batch` in place. False, and nothing is changed, when its nodes are not in preorder."""
    frames = _indices(batch.stacks.frames)
    parents = np.arange(len(frames)) - _indices(batch.stacks.parent_distances)
    depths = _depths(parents)
    ends = _ends(batch, parents)
    starts = ends[:-1] + 1
    climbs = depths[ends[:-1]] + 1 - depths[starts]
    lengths = np.diff(ends)
    if (climbs < 0).any() or not np.array_equal(parents, _parents(climbs, lengths, len(parents))):
        return False
    stacks = pb.StackTable(climbs=encode_column(_after_zero(climbs)), lengths=encode_column(_after_zero(lengths)))
    _pack_frames(stacks, parents, frames, starts)
    batch.stacks.CopyFrom(stacks)
    for series in batch.series:
        for column in (series.new_keys.stacks, series.new_keys.seconds):
            column.CopyFrom(encode_ascending(np.searchsorted(ends, _indices(column))))
    batch.frames.offsets.CopyFrom(encode_ascending(decode_column(batch.frames.offsets, _MOST_FRAMES)))
    batch.version = PACKED
    return True


def unpack(batch: pb.FoldedBatch, most_nodes: int) -> None:
    """Bring `batch` into layout 1, in place; one of layout 1 is left alone. Raises ColumnError when it cannot be unpacked.

    No table may have more than `most_nodes` entries: zeros are sent for almost nothing, and each costs 8 bytes several times here.
    """
    if batch.version != PACKED:
        return
    climbs, lengths = _indices(batch.stacks.climbs, most_nodes), _indices(batch.stacks.lengths, most_nodes)
    if len(climbs) != len(lengths) or not len(climbs) or climbs[0] or lengths[0]:
        raise ColumnError(f"{len(climbs)} climbs for {len(lengths)} lengths, or a stack 0 that is not empty")
    if (lengths[1:] < 1).any() or (lengths > most_nodes).any() or 1 + int(lengths.sum()) > most_nodes:
        raise ColumnError(f"stacks without frames, or more than {most_nodes} nodes")
    ends = np.cumsum(lengths)
    count = int(ends[-1]) + 1
    parents = _parents(climbs[1:], lengths[1:], count)
    choices = _choices(batch.stacks, ends[:-1] + 1, count)
    most_frames = min(most_nodes, max(1, len(batch.frames.kinds.data) // max(1, batch.frames.kinds.width)))
    frames = _unpack_frames(batch.stacks, parents, choices, most_frames)
    stacks = pb.StackTable(parent_distances=encode_column(np.arange(count) - parents), frames=encode_column(frames))
    batch.stacks.CopyFrom(stacks)
    for series in batch.series:
        for column in (series.new_keys.stacks, series.new_keys.seconds):
            numbers = _indices(column, most_nodes)
            if numbers.size and (numbers.max() >= len(ends) or numbers.min() < 0):
                raise ColumnError(f"a key names stack {int(numbers.max())} of {len(ends)}")
            column.CopyFrom(encode_column(ends[numbers]))
    batch.version = PLAIN


def _ends(batch: pb.FoldedBatch, parents: Index) -> Index:
    """Nodes where a stack ends: node 0, those that keys name, and those that nothing stands under."""
    is_end = np.ones(len(parents), np.bool_)
    is_end[parents] = False
    is_end[0] = True
    for series in batch.series:
        is_end[_indices(series.new_keys.stacks)] = True
        is_end[_indices(series.new_keys.seconds)] = True
    return np.flatnonzero(is_end)


def _pack_frames(stacks: pb.StackTable, parents: Index, frames: Index, starts: Index) -> None:
    """Fill child_counts, children and both columns of choices."""
    above = frames[parents[1:]]
    count = int(frames.max(initial=0)) + 1
    edges, edge_of_node, uses = np.unique(above * count + frames[1:], return_inverse=True, return_counts=True)
    order = np.lexsort((-uses, edges // count))
    child_counts = np.bincount(edges // count, minlength=count)
    first = np.cumsum(child_counts) - child_counts
    rank = np.empty(len(edges), np.int64)
    rank[order] = np.arange(len(edges)) - first[edges[order] // count]
    stacks.child_counts.CopyFrom(encode_column(child_counts))
    children = edges[order] % count
    is_first = np.zeros(len(children), np.bool_)
    is_first[first[child_counts > 0]] = True
    steps = np.diff(children, prepend=0)[~is_first]
    stacks.first_children.CopyFrom(encode_column(children[is_first]))
    stacks.next_children.CopyFrom(encode_column(np.where(steps < 0, -2 * steps - 1, 2 * steps)))
    choices = _after_zero(rank[edge_of_node])
    stacks.first_choices.CopyFrom(encode_column(_after_zero(choices[starts])))
    stacks.next_choices.CopyFrom(encode_column(choices[_is_next(starts, len(parents))]))


def _choices(stacks: pb.StackTable, starts: Index, count: int) -> Index:
    """Bring the two columns of choices together."""
    is_next = _is_next(starts, count)
    first, following = _indices(stacks.first_choices, count), _indices(stacks.next_choices, count)
    if len(first) != len(starts) + 1 or len(following) != int(is_next.sum()):
        raise ColumnError(f"{len(first)} and {len(following)} choices for {count} nodes in {len(starts)} stacks")
    choices = np.zeros(count, np.int64)
    choices[starts] = first[1:]
    choices[is_next] = following
    return choices


def _is_next(starts: Index, count: int) -> npt.NDArray[np.bool_]:
    """Mark the nodes that are neither node 0 nor the first new one of a stack."""
    is_next = np.ones(count, np.bool_)
    is_next[0] = False
    is_next[starts] = False
    return is_next


def _unpack_frames(stacks: pb.StackTable, parents: Index, choices: Index, most_frames: int) -> Index:
    """Choose the frame of every node, level by level: a node's frame is known once its parent's is."""
    child_counts = _indices(stacks.child_counts, most_frames)
    if not child_counts.size or min(child_counts.min(), choices.min()) < 0 or child_counts.max() > len(parents):
        raise ColumnError("children or choices that cannot be")
    children = _children(stacks, child_counts, len(parents))
    if children.size and not 0 < children.min() <= children.max() < len(child_counts):
        raise ColumnError("a frame that is called is none of the frames")
    first = np.cumsum(child_counts) - child_counts
    depths = _depths(parents)
    by_depth = np.argsort(depths.astype(np.uint16), kind="stable")
    bounds = np.searchsorted(depths[by_depth], np.arange(int(depths.max(initial=0)) + 2))
    frames = np.zeros(len(parents), np.int64)
    for depth in range(1, len(bounds) - 1):
        nodes = by_depth[bounds[depth] : bounds[depth + 1]]
        above = frames[parents[nodes]]
        if (choices[nodes] >= child_counts[above]).any():
            raise ColumnError("a choice among more frames than there are")
        frames[nodes] = children[first[above] + choices[nodes]]
    return frames


def _children(stacks: pb.StackTable, child_counts: Index, most: int) -> Index:
    """Bring the children of all frames together."""
    firsts, others = _indices(stacks.first_children, most), _indices(stacks.next_children, most)
    counts = child_counts[child_counts > 0]
    if len(firsts) != len(counts) or int(counts.sum()) != len(firsts) + len(others):
        raise ColumnError(f"{len(firsts)} and {len(others)} children for {len(counts)} frames that have some")
    starts = np.cumsum(counts) - counts
    is_first = np.zeros(len(firsts) + len(others), np.bool_)
    is_first[starts] = True
    steps = np.zeros(len(is_first), np.int64)
    steps[is_first] = firsts
    steps[~is_first] = np.where(others & 1, -(others >> 1) - 1, others >> 1)
    sums = np.cumsum(steps)
    children: Index = sums - np.repeat(sums[starts] - firsts, counts)
    return children


def _parents(climbs: Index, lengths: Index, count: int) -> Index:
    """Find the parents of all nodes in preorder. Raises ColumnError when a climb leads over the root, or a stack is too deep."""
    end_depths = np.cumsum(lengths - climbs)
    start_depths = end_depths - lengths + 1
    if (climbs < 0).any() or (start_depths < 1).any() or (end_depths > _MOST_DEPTH).any():
        raise ColumnError(f"a stack that begins above its root, or is deeper than {_MOST_DEPTH}")
    ends = np.cumsum(lengths)
    starts = ends - lengths + 1
    numbers = np.arange(count)
    parents = np.maximum(numbers - 1, 0)
    depths = np.zeros(count, np.int64)
    depths[1:] = numbers[1:] - np.repeat(starts - start_depths, lengths)
    # The parent of a first node is the last node before it that lies one level higher. Levels lie one after another when nodes are
    # sorted by depth, so one search finds it for all.
    by_depth = np.argsort(depths.astype(np.uint16), kind="stable")
    place = depths[by_depth] * count + by_depth
    parents[starts] = by_depth[np.searchsorted(place, (start_depths - 1) * count + starts) - 1]
    return parents


def _depths(parents: Index) -> Index:
    """Count the nodes above each, node 0 included; doubling the step of a walk to the root each time."""
    depths = np.ones(len(parents), np.int64)
    depths[:1] = 0
    above = parents
    while above.any():
        depths += depths[above]
        above = above[above]
    return depths


def _after_zero(values: Index) -> Index:
    return np.concatenate((np.zeros(1, np.int64), values))


def _indices(column: pb.Column, most: int = _MOST_FRAMES) -> Index:
    return decode_column(column, most).view(np.int64)
