# SPDX-License-Identifier: Apache-2.0
"""Merging rows by key: sums exact at any size, maxima, several services, budgets."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest

from server.errors import LimitExceeded
from server.query.merge import MergeBudget, Meter, key_weights
from server.store.dictionaries import Dictionaries
from server.store.protocol import ColumnInfo, KindInfo, Piece, Selection, ServiceDictionary, Store
from server.store.push import ValueMerge

SELECTION = Selection("offcpu", 0, 100)
COLUMNS = ("ns", "max_ns")


def piece(service: str, keys: list[int], ns: list[int], max_ns: list[int], start: int = 10) -> Piece:
    columns = {"ns": np.array(ns, np.uint64), "max_ns": np.array(max_ns, np.uint64)}
    return Piece(service, np.array(keys, np.int64), 1, columns, start, start + 10)


@dataclass
class FakeStore:
    """A store of fixed pieces; each service has 5 keys."""

    pieces: list[Piece]
    asked: list[Selection] = field(default_factory=list)

    def select(self, selection: Selection) -> Iterator[Piece]:
        self.asked.append(selection)
        yield from self.pieces

    def kinds(self) -> list[KindInfo]:
        return [KindInfo("offcpu", (ColumnInfo("ns", "ns", ValueMerge.SUM), ColumnInfo("max_ns", "ns", ValueMerge.MAX)))]

    def dictionary(self, service: str) -> ServiceDictionary:
        return replace(Dictionaries.empty(service), key_stacks=np.zeros(5, np.uint32))


def store(*pieces: Piece) -> Store:
    return cast(Store, FakeStore(list(pieces)))


def test_rows_of_one_key_add_up_over_pieces() -> None:
    merged = key_weights(store(piece("a", [1, 3, 1], [7, 23, 2], [7, 23, 2]), piece("a", [3], [5], [5], 40)), SELECTION, COLUMNS)
    assert merged.services["a"].columns["ns"].tolist() == [0, 9, 0, 28, 0]
    assert merged.services["a"].columns["max_ns"].tolist() == [0, 7, 0, 23, 0]
    assert merged.services["a"].totals == {"ns": 37, "max_ns": 23}
    assert (merged.start_unix_ns, merged.end_unix_ns, merged.rows) == (10, 50, 4)


def test_services_are_kept_apart() -> None:
    merged = key_weights(store(piece("b", [1], [7], [7]), piece("a", [1], [23], [23])), SELECTION, COLUMNS)
    assert {name: one.totals["ns"] for name, one in merged.services.items()} == {"a": 23, "b": 7}


def test_sums_beyond_53_bits_are_exact() -> None:
    big = 2**53 + 1  # the first integer float64 cannot hold
    merged = key_weights(store(piece("a", [2, 2, 2], [big, big, big], [big, 1, 2])), SELECTION, COLUMNS)
    assert merged.services["a"].totals == {"ns": 3 * big, "max_ns": big}
    assert merged.services["a"].columns["ns"][2] == float(3 * big)


def test_total_of_many_large_keys_does_not_wrap() -> None:
    merged = key_weights(store(piece("a", [0, 1, 2], [2**63, 2**63, 2**63], [1, 1, 1])), SELECTION, COLUMNS)
    assert merged.services["a"].totals["ns"] == 3 * 2**63


def test_column_that_a_piece_lacks_counts_as_nothing() -> None:
    bare = replace(piece("a", [1], [7], [7]), columns={"ns": np.array([7], np.uint8)})
    assert key_weights(store(bare), SELECTION, COLUMNS).services["a"].columns["max_ns"].tolist() == [0] * 5


def test_nothing_found_is_no_service() -> None:
    merged = key_weights(store(), SELECTION, COLUMNS)
    assert (dict(merged.services), merged.start_unix_ns, merged.end_unix_ns) == ({}, 0, 0)


def test_only_the_columns_asked_for_are_read() -> None:
    fake = FakeStore([])
    key_weights(cast(Store, fake), SELECTION, ("ns",))
    assert fake.asked == [replace(SELECTION, columns=("ns",))]


def test_rows_at_the_budget_pass_and_one_more_does_not() -> None:
    rows = [piece("a", [1, 2], [1, 1], [1, 1]), piece("a", [1], [1], [1])]
    assert key_weights(store(*rows), SELECTION, COLUMNS, Meter(MergeBudget(rows=3))).rows == 3
    with pytest.raises(LimitExceeded, match="more than 2 rows: ask for a shorter range"):
        key_weights(store(*rows), SELECTION, COLUMNS, Meter(MergeBudget(rows=2)))


def test_seconds_over_the_budget_are_refused() -> None:
    ticks = iter([0.0, 30.0, 30.1])
    rows = [piece("a", [1], [1], [1]), piece("a", [1], [1], [1])]
    with pytest.raises(LimitExceeded, match="more than 30 s"):
        key_weights(store(*rows), SELECTION, COLUMNS, Meter(MergeBudget(clock=lambda: next(ticks))))
