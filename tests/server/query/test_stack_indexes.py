# SPDX-License-Identifier: Apache-2.0
"""Indexes grow with the dictionary in few segments, by questions and by upkeep, are named anew, and leave when there are too many."""

import numpy as np
import pytest

from server.profile.stack_values import HeldStacks, meant_frames
from server.query import stack_indexes
from server.query.stack_indexes import ServiceStacks, StackIndexes
from tests.server.query.fakes import FakeNamer, FakeStore


def grown(store: FakeStore, first: int, count: int) -> None:
    """Add so many stacks of the service "shop", the first of them numbered `first`; every other passes through "odd"."""
    rows = [("shop", "a", "t", ["main", "odd" if n % 2 else "even", f"f{n}"], 1) for n in range(first, first + count)]
    store.add(rows)


def odd_ones(stacks: ServiceStacks, key_count: int) -> int:
    is_odd = np.array([name.endswith("odd") for name in stacks.table.names])
    return int(HeldStacks(stacks.segments, meant_frames(is_odd, stacks.bounds, stacks.names), key_count).mask().sum())


def sizes(stacks: ServiceStacks) -> list[int]:
    return [segment.keys.size for segment in stacks.segments]


def test_an_unchanged_dictionary_is_indexed_once_and_a_longer_one_gets_a_segment() -> None:
    store = FakeStore()
    grown(store, 0, 70)
    indexes = StackIndexes(FakeNamer(), store.binaries)
    first = indexes.stacks(store.dictionary("shop"))
    assert indexes.stacks(store.dictionary("shop")).segments is first.segments
    grown(store, 70, 7)
    second = indexes.stacks(store.dictionary("shop"))
    assert second.segments[0] is first.segments[0] and sizes(second) == [71, 7]
    assert odd_ones(second, 78) == 38


def test_an_older_dictionary_is_covered() -> None:
    store = FakeStore()
    grown(store, 0, 6)
    short = store.dictionary("shop")
    grown(store, 6, 6)
    indexes = StackIndexes(FakeNamer(), store.binaries)
    indexes.stacks(store.dictionary("shop"))
    assert odd_ones(indexes.stacks(short), short.sizes[2]) == 3


def test_segments_are_few_and_none_is_shorter_than_all_later_ones() -> None:
    store = FakeStore()
    indexes = StackIndexes(FakeNamer(), store.binaries)
    for turn in range(60):
        grown(store, 7 * turn, 7)
        found = sizes(indexes.stacks(store.dictionary("shop")))
        assert all(size >= sum(found[at + 1 :]) for at, size in enumerate(found)) and len(found) <= 9


def test_a_question_joins_no_long_segments_but_upkeep_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_indexes, "MOST_JOINED", 50)
    store = FakeStore()
    indexes = StackIndexes(FakeNamer(), store.binaries)
    for turn in range(4):
        grown(store, 40 * turn, 40)
        found = indexes.stacks(store.dictionary("shop"))
    assert sizes(found) == [41, 40, 40, 40]
    grown(store, 160, 7)
    assert sizes(indexes.stacks(store.dictionary("shop"))) == [41, 40, 40, 40, 7]
    indexes.tend([store.dictionary("shop")])
    found = indexes.stacks(store.dictionary("shop"))
    assert sizes(found) == [168] and odd_ones(found, 168) == 83


def test_upkeep_leaves_the_last_few_to_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_indexes, "LEAST_FRESH", 30)
    store, namer = FakeStore(), FakeNamer()
    indexes = StackIndexes(namer, store.binaries)
    grown(store, 0, 70)
    indexes.tend([store.dictionary("shop")])
    tended = indexes.stacks(store.dictionary("shop")).segments
    assert [segment.keys.size for segment in tended] == [71]
    grown(store, 70, 29)
    indexes.tend([store.dictionary("shop")])
    assert sizes(indexes.stacks(store.dictionary("shop"))) == [71, 29]


def test_other_names_are_seen_without_a_new_index() -> None:
    store, namer = FakeStore(), FakeNamer()
    grown(store, 0, 6)
    indexes = StackIndexes(namer, store.binaries)
    before = indexes.stacks(store.dictionary("shop"))
    namer.generation, namer.prefix = 2, "ns::"
    after = indexes.stacks(store.dictionary("shop"))
    assert after.segments is before.segments and "ns::odd" in after.table.names and "odd" not in after.table.names
    assert odd_ones(after, 7) == 3


def test_the_one_asked_for_longest_ago_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_indexes, "MOST_BYTES", 1)
    store = FakeStore()
    store.add([("shop", "a", "t", ["main"], 1), ("mail", "a", "t", ["main"], 1)])
    indexes = StackIndexes(FakeNamer(), store.binaries)
    shop = indexes.stacks(store.dictionary("shop"))
    mail = indexes.stacks(store.dictionary("mail"))
    assert indexes.stacks(store.dictionary("mail")).segments is mail.segments
    indexes.tend([store.dictionary("shop")])  # There is no room that upkeep may take.
    assert indexes.stacks(store.dictionary("mail")).segments is mail.segments
    assert indexes.stacks(store.dictionary("shop")).segments is not shop.segments
