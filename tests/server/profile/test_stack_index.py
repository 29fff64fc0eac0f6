# SPDX-License-Identifier: Apache-2.0
"""A frame's stacks are ranges of places, worked out by hand on a small tree."""

import numpy as np

from server.profile.stack_index import Stacks, StackSegment, runs, stack_segment

#   0 root
#   +- 1 frame 5
#   |  +- 2 frame 7   keys 0, 3
#   |  |  +- 4 frame 5   key 2
#   |  +- 5 frame 2      key 4
#   +- 3 frame 7   key 1
STACKS = Stacks(
    node_parents=np.array([0, 0, 1, 0, 2, 1], np.uint32),
    node_frames=np.array([0, 5, 7, 7, 5, 2], np.uint32),
    key_nodes=np.array([2, 3, 4, 2, 5], np.uint32),
)


def keys_of(segment: StackSegment, *frames: int) -> list[int]:
    _, ranges = segment.ranges(np.array(frames, np.intp))
    return sorted(segment.keys[segment.places(ranges)].tolist())


def test_stacks_that_pass_through_a_node_are_neighbours() -> None:
    segment = stack_segment(STACKS, 0)
    assert segment.keys.tolist() == [0, 3, 2, 4, 1]
    assert segment.leaves.tolist() == [7, 7, 5, 2, 7]
    which, ranges = segment.ranges(np.array([5, 7, 6, 9]))
    assert which.tolist() == [0, 0, 1, 1]
    assert list(zip(segment.low[ranges].tolist(), segment.high[ranges].tolist(), strict=True)) == [(0, 4), (2, 3), (0, 3), (4, 5)]


def test_keys_by_frames() -> None:
    segment = stack_segment(STACKS, 0)
    assert [keys_of(segment, frame) for frame in (5, 7, 2, 1, 99)] == [[0, 2, 3, 4], [0, 1, 2, 3], [4], [], []]
    assert keys_of(segment, 2, 7) == [0, 1, 2, 3, 4]
    assert keys_of(segment) == []


def test_a_later_segment_knows_its_own_keys_alone_and_all_frames_above_them() -> None:
    segment = stack_segment(STACKS, 2)
    assert (segment.first_key, segment.end_key) == (2, 5)
    assert [keys_of(segment, frame) for frame in (5, 7, 2)] == [[2, 3, 4], [2, 3], [4]]


def test_a_service_without_stacks() -> None:
    none = np.zeros(1, np.uint32)
    segment = stack_segment(Stacks(none, none, none), 0)
    assert segment.keys.tolist() == [0] and keys_of(segment, 0, 1) == []


def test_runs_follow_one_another() -> None:
    assert runs(np.array([7, 2, 9, 0]), np.array([2, 3, 0, 1])).tolist() == [7, 8, 2, 3, 4, 0]
