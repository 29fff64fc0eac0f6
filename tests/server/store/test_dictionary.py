# SPDX-License-Identifier: Apache-2.0
"""Dictionaries: exact numbers, chunks that give back the same, what was rolled back leaves no trace."""

import numpy as np
import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.store.dictionary import GrowingDictionary, PushTables, node_depths
from server.store.push import PushFrames, PushKeys, PushStacks

# Frames 1 to 4: a file place, the same as return address, a JIT name, a mark. Nodes: 1 = f1; 2 = f2 under 1; 3 = f3 under 2; 4 = f4.
FRAMES = PushFrames(
    kinds=np.array([0, pb.PLACE_KIND_FILE, pb.PLACE_KIND_FILE, pb.PLACE_KIND_JIT, pb.PLACE_KIND_MARK], np.uint64),
    refs=np.array([0, 1, 1, 2, 0], np.uint64),
    offsets=np.array([0, 64, 64, 0, 1], np.uint64),
    is_return=np.array([0, 0, 1, 0, 0], np.uint64),
)
STACKS = PushStacks(parents=np.array([0, 0, 1, 2, 0]), frames=np.array([0, 1, 2, 3, 4]))
STRINGS = [b"", b"worker", b"jit;name\xff", b"unused"]


def tables(binary_row: int = 70) -> PushTables:
    return PushTables(STRINGS, np.array([0, binary_row]), FRAMES, STACKS, node_depths(STACKS.parents))


def keys(*rows: tuple[int, int, int]) -> PushKeys:
    """(stack, second, thread) of each."""
    stacks, seconds, threads = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return PushKeys(stacks, seconds, np.zeros_like(stacks), threads, np.zeros_like(stacks))


@pytest.fixture
def dictionary() -> GrowingDictionary:
    return GrowingDictionary("web", 7)


def test_only_what_the_keys_need_is_taken_in(dictionary: GrowingDictionary) -> None:
    assert dictionary.intern(tables(), keys((2, 0, 1))).tolist() == [1]
    assert dictionary.sizes == (3, 3, 2, 2)  # entries 0 included; frames 1 and 2, nodes 1 and 2, one key, "worker"
    assert dictionary.intern(tables(), keys((3, 4, 0), (2, 0, 1))).tolist() == [2, 1]
    assert dictionary.sizes == (5, 5, 3, 3)


def test_places_are_told_apart_by_binary_row_and_by_return(dictionary: GrowingDictionary) -> None:
    dictionary.intern(tables(70), keys((1, 0, 0)))
    dictionary.intern(tables(71), keys((1, 0, 0)))
    dictionary.intern(tables(71), keys((2, 0, 0)))
    dictionary.commit()
    frozen = dictionary.snapshot()
    assert list(zip(frozen.frame_refs.tolist(), frozen.frame_is_return.tolist(), strict=True)) == [(0, 0), (70, 0), (71, 0), (71, 1)]


def test_empty_key_is_number_0(dictionary: GrowingDictionary) -> None:
    assert dictionary.intern(tables(), keys((0, 0, 0))).tolist() == [0]


def test_readers_see_what_was_committed(dictionary: GrowingDictionary) -> None:
    dictionary.intern(tables(), keys((2, 0, 1)))
    assert dictionary.snapshot().sizes == (1, 1, 1, 1)
    dictionary.commit()
    frozen = dictionary.snapshot()
    assert frozen.sizes == (3, 3, 2, 2)
    assert dictionary.snapshot() is frozen
    dictionary.intern(tables(), keys((3, 4, 0)))
    assert (frozen.sizes, frozen.strings) == ((3, 3, 2, 2), [b"", b"worker"])


def test_rolled_back_entries_come_back_with_the_same_numbers(dictionary: GrowingDictionary) -> None:
    dictionary.intern(tables(), keys((1, 0, 1)))
    dictionary.commit()
    before = dictionary.sizes
    first = dictionary.intern(tables(), keys((3, 4, 0), (2, 0, 1))).tolist()
    dictionary.roll_back(before)
    assert dictionary.sizes == before
    assert dictionary.intern(tables(), keys((2, 0, 1))).tolist() == [2]
    dictionary.roll_back(before)
    assert dictionary.intern(tables(), keys((3, 4, 0), (2, 0, 1))).tolist() == first


def test_chunks_give_back_the_same_dictionary(dictionary: GrowingDictionary) -> None:
    chunks = []
    for wanted in (keys((1, 0, 1)), keys((3, 4, 0)), keys((2, 0, 1))):
        before = dictionary.sizes
        dictionary.intern(tables(), wanted)
        chunks.append(dictionary.chunk(before))
    dictionary.commit()
    loaded = GrowingDictionary("web", 23)
    for chunk in chunks:
        loaded.load(chunk)
    left, right = dictionary.snapshot(), loaded.snapshot()
    for name in left.__dataclass_fields__:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert loaded.intern(tables(), keys((3, 4, 0), (4, 0, 0))).tolist() == [2, 4]


def test_a_parent_has_a_lower_number_than_its_children(dictionary: GrowingDictionary) -> None:
    draw = np.random.default_rng(7)
    parents = np.array([0, *(draw.integers(0, node) for node in range(1, 3000))])
    stacks = PushStacks(parents, np.array([0, *draw.integers(1, 5, 2999)]))
    push = PushTables(STRINGS, np.array([0, 1]), FRAMES, stacks, node_depths(parents))
    dictionary.intern(push, keys(*((int(node), 0, 0) for node in draw.integers(1, 3000, 500))))
    dictionary.commit()
    frozen = dictionary.snapshot()
    assert np.all(frozen.node_parents[1:] < np.arange(1, frozen.node_parents.size))


def test_depth_is_the_number_of_frames() -> None:
    assert node_depths(np.array([0, 0, 1, 2, 0, 4])).tolist() == [0, 1, 2, 3, 1, 2]
    assert node_depths(np.array([0, *range(999)]))[-1] == 999
