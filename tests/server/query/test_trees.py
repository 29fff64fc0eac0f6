# SPDX-License-Identifier: Apache-2.0
"""Trees are kept, extended and made anew when names change."""

from collections.abc import Sequence

import numpy as np
import pytest

from server.profile.names import FrameColumns, FrameNames, FrameParts, FunctionTable
from server.profile.search import match_names
from server.query import trees
from server.query.frame_names import Binaries
from server.query.trees import TreeCache
from tests.server.query.fakes import FakeNamer, FakeStore


class CountingNamer(FakeNamer):
    """Counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        self.asked += 1
        return super().names(frames, binaries, strings, service)


def made() -> tuple[FakeStore, CountingNamer, TreeCache]:
    store, namer = FakeStore(), CountingNamer()
    store.add([("shop", "a", "t", ["main", "f"], 7)])
    return store, namer, TreeCache(namer, store.binaries)


def names(tree: trees.ServiceTree) -> list[str]:
    return [tree.tree.table.names[n] for n in tree.tree.name.tolist()]


def test_an_unchanged_dictionary_is_not_named_again() -> None:
    store, namer, cache = made()
    assert cache.tree(store.dictionary("shop")) is cache.tree(store.dictionary("shop"))
    assert namer.asked == 1


def test_a_longer_dictionary_extends_the_tree_and_a_shorter_one_is_covered() -> None:
    store, namer, cache = made()
    short = store.dictionary("shop")
    cache.tree(short)
    store.add([("shop", "a", "t", ["main", "e"], 7)])
    longer = cache.tree(store.dictionary("shop"))
    assert names(longer) == ["", "main", "e", "f"]
    assert cache.tree(short) is longer
    assert namer.asked == 2


def test_another_generation_names_all_again() -> None:
    store, namer, cache = made()
    cache.tree(store.dictionary("shop"))
    namer.generation, namer.prefix = 2, "ns::"
    assert names(cache.tree(store.dictionary("shop"))) == ["", "ns::main", "ns::f"]


def test_names_that_change_while_they_are_made_are_not_mixed() -> None:
    store, namer, cache = made()
    cache.tree(store.dictionary("shop"))
    store.add([("shop", "a", "t", ["main", "e"], 7)])
    before = namer.names

    def changing(frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        namer.generation, namer.prefix = 2, "ns::"
        return before(frames, binaries, strings, service)

    namer.names = changing  # type: ignore[method-assign]
    assert names(cache.tree(store.dictionary("shop"))) == ["", "ns::main", "ns::e", "ns::f"]


def test_the_oldest_tree_leaves_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_NODES", 5)
    store, namer, cache = made()
    store.add([("mail", "a", "t", ["main", "g"], 7)])
    cache.tree(store.dictionary("shop"))
    cache.tree(store.dictionary("mail"))
    cache.tree(store.dictionary("mail"))
    assert namer.asked == 2
    cache.tree(store.dictionary("shop"))
    assert namer.asked == 3


def test_trees_take_a_quarter_of_a_small_machines_memory() -> None:
    assert trees.most_nodes(4 << 30) * 250 == pytest.approx(1 << 30)
    assert trees.most_nodes(1 << 40) == 20_000_000


def test_a_service_without_stacks_is_its_root() -> None:
    store, _, cache = made()
    assert names(cache.tree(store.dictionary("nobody"))) == [""]


class InliningNamer(FakeNamer):
    """Every frame called "f" has "g" inlined at a.cc:7 and, in that, "h" at b.h:23."""

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        plain = super().names(frames, binaries, strings, service)
        functions, rows = plain.functions, plain.function.tolist()
        count = len(rows)
        table = FunctionTable(
            names=[*functions.names, "g", "h"],
            raw_names=[*functions.names, "g", "h"],
            binaries=[*functions.binaries, "app", "app"],
            codes=np.append(functions.codes, [0, 0]).astype(np.uint8),
            is_named=np.append(functions.is_named, [True, True]),
            files=[""] * (count + 2),
            lines=np.zeros(count + 2, np.int32),
        )
        parts = [[(row, 0, 0, 0), (count, 1, 1, 7), (count + 1, 1, 2, 23)] if table.names[row] == "f" else [(row, 0, 0, 0)] for row in rows]
        columns = np.array([part for some in parts for part in some], np.int32).T
        bounds = np.cumsum([0, *[len(some) for some in parts]])
        made = FrameParts(bounds, columns[0], columns[1] == 1, columns[2], columns[3], ["", "/src/a.cc", "/src/b.h"])
        return FrameNames(plain.function, table, plain.generation, made)


def test_inlined_calls_are_nodes_of_their_own_also_when_the_tree_grows() -> None:
    store, namer = FakeStore(), InliningNamer()
    store.add([("shop", "a", "t", ["main", "f"], 7)])
    cache = TreeCache(namer, store.binaries)
    first = cache.tree(store.dictionary("shop"))
    assert names(first) == ["", "main", "f", "g", "h"]
    assert first.tree.inlined.tolist() == [False, False, False, True, True]
    assert first.tree.depth[first.nodes].tolist() == [0, 1, 4]
    store.add([("shop", "a", "t", ["main", "f", "k"], 7), ("shop", "a", "t", ["f", "g"], 7)])
    grown = cache.tree(store.dictionary("shop"))
    assert names(grown) == ["", "f", "g", "h", "g", "main", "f", "g", "h", "k"]
    assert grown.tree.inlined.tolist() == [False, False, True, True, False, False, False, True, True, False]


def test_names_of_a_tree_stay_as_they_are_while_another_question_extends_them() -> None:
    """A search and a table of functions read all columns, one after another: they must be of one length to the end."""
    store, namer = FakeStore(), InliningNamer()
    store.add([("shop", "a", "t", ["main", "f"], 7)])
    cache = TreeCache(namer, store.binaries)
    first = cache.tree(store.dictionary("shop")).tree.table
    size = len(first)
    store.add([("shop", "a", "t", ["main", "f", "k"], 7)])
    grown = cache.tree(store.dictionary("shop")).tree.table
    assert (len(first), len(first.sorts), len(first.flags), len(grown)) == (size, size, size, size + 1)
    masks = [match_names(table, lambda name: name == "f").tolist() for table in (first, grown)]
    assert masks[0] == masks[1][:size] and sum(masks[1]) == 1
    assert first.ranks().size == size


def test_by_line_names_say_where() -> None:
    store, namer = FakeStore(), InliningNamer()
    store.add([("shop", "a", "t", ["main", "f"], 7)])
    cache = TreeCache(namer, store.binaries)
    by_line = cache.tree(store.dictionary("shop"), is_by_line=True)
    assert names(by_line) == ["", "main", "f", "g a.cc:7", "h b.h:23"]
    assert cache.tree(store.dictionary("shop")) is not by_line
    assert cache.tree(store.dictionary("shop"), is_by_line=True) is by_line
