# SPDX-License-Identifier: Apache-2.0
"""Kinds and columns that cannot be stored cost themselves and are counted; the window they came in, and everybody else's, stays."""

from collections.abc import Callable

import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason
from server.store import admission, tables
from server.store.admission import MOST_COLUMNS, REFUSED
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import ALL_TIME, MINUTE_NS, MINUTE_UNIX_NS, STACK, compact_all, decoded, push_rows, totals

ROWS = [("web", "t", STACK, 7), ("db", "t", STACK, 23)]
MALFORMED, LIMIT = LossReason.LOSS_REASON_REJECTED_MALFORMED, LossReason.LOSS_REASON_REJECTED_LIMIT


def push(store: SqlStore, sequence: int, change: Callable[[pb.FoldedBatch], None], host: bytes = b"bad") -> None:
    """The rows above, changed by an agent that is not like the others."""
    batch = batch_of(ROWS, host=host)
    change(batch)
    store.append(decoded(push_of(batch, sequence=sequence, agent_id=host.ljust(16, b"."))))


def as_kind(name: str) -> Callable[[pb.FoldedBatch], None]:
    def change(batch: pb.FoldedBatch) -> None:
        for one in (*batch.series, *batch.accounts):
            one.kind = name

    return change


def columns_of(store: SqlStore, kind: str) -> list[tuple[str, str]]:
    return [(column.name, column.unit) for info in store.kinds() if info.name == kind for column in info.columns]


def flags_of(store: SqlStore, host: str) -> tuple[str, ...]:
    return next(agent.flags for agent in store.agents() if agent.host == host)


def account_of(store: SqlStore, host: str, kind: str = "cpu") -> tuple[int, int, dict[int, int]]:
    slot = next(one for one in store.accounts(kind, *ALL_TIME) if one.host == host)
    return slot.expected, slot.stored, dict(slot.lost)


def test_who_names_a_known_kind_first_does_not_rule_it(store: SqlStore) -> None:
    def other_unit(batch: pb.FoldedBatch) -> None:
        batch.series[0].columns[0].unit = "samples"

    push(store, 1, other_unit)
    assert totals(store) == {"db": 23}
    assert account_of(store, "bad") == (30, 23, {MALFORMED: 7})
    assert (flags_of(store, "bad"), store.refused("series"), store.refused("columns")) == ((REFUSED,), 1, 0)
    push_rows(store, ROWS, 1)
    assert totals(store) == {"web": 7, "db": 46}
    assert columns_of(store, "cpu") == [("samples", "count"), ("ns", "ns"), ("observed", "count")]
    assert (account_of(store, "web-1"), flags_of(store, "web-1")) == ((30, 30, {}), ())


def test_a_further_column_that_contradicts_is_left_out_alone(store: SqlStore) -> None:
    def other_merge(batch: pb.FoldedBatch) -> None:
        batch.series[0].columns[1].merge = pb.MERGE_MAX

    push(store, 1, other_merge)
    assert (totals(store), account_of(store, "bad")) == ({"web": 7, "db": 23}, (30, 30, {}))
    assert set(totals(store, column="ns").values()) == {0, 23 * 10_101_010}
    assert (store.refused("series"), store.refused("columns"), flags_of(store, "bad")) == (0, 1, (REFUSED,))


def test_first_column_of_a_known_kind_counts_whatever_came_first(store: SqlStore) -> None:
    def other_first(batch: pb.FoldedBatch) -> None:
        for series in batch.series:
            series.columns[0].name = "junk"

    push(store, 1, other_first)
    assert columns_of(store, "cpu")[-1] == ("junk", "count")
    push_rows(store, ROWS, 1)
    assert [name for name, _ in columns_of(store, "cpu")] == ["samples", "ns", "observed", "junk"]
    for _ in range(2):
        assert (totals(store), totals(store, column="junk")) == ({"web": 7, "db": 23}, {"web": 7, "db": 23})
        compact_all(store, MINUTE_UNIX_NS + 10 * MINUTE_NS)


def test_a_store_whose_kind_was_spoilt_is_mended_when_it_is_opened(store: SqlStore) -> None:
    spoilt = '[["junk", "count", 1], ["samples", "samples", 2]]'
    push_rows(store, ROWS, 1)
    with store._units.begin() as unit:
        unit.connection.execute(tables.kinds.update().values(columns=spoilt))
    opened = SqlStore(store._engine.url)
    assert columns_of(opened, "cpu") == [("samples", "count"), ("junk", "count")]
    push_rows(opened, ROWS, 2)
    assert totals(opened) == {"web": 14, "db": 46}
    opened.close()


def test_kinds_beyond_the_limit_cost_themselves_and_never_a_known_one(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_KINDS", 3)
    for number in range(4):
        push(store, number + 1, as_kind(f"junk_{number}"))
    assert len(store.kinds()) == 3
    assert (store.refused("series"), flags_of(store, "bad")) == (2, (REFUSED,))

    def one_of_two(batch: pb.FoldedBatch) -> None:
        batch.series[0].kind = "weather"

    push(store, 99, one_of_two, b"web-2")
    assert totals(store) == {"db": 23}
    assert account_of(store, "web-2") == (30, 30, {})  # the account of its own kind was not there to tell what it lost
    push_rows(store, ROWS, 1)
    assert totals(store) == {"web": 7, "db": 46}


def test_a_kind_has_so_many_columns_and_known_ones_keep_their_place(store: SqlStore) -> None:
    def many(batch: pb.FoldedBatch) -> None:
        first = pb.Series.FromString(batch.series[0].SerializeToString())
        del batch.series[:], first.columns[1:]
        for number in range(40):
            series = batch.series.add()
            series.CopyFrom(first)
            names = [f"x{number}_{column}" for column in range(100)]
            series.columns.extend(pb.ValueColumn(name=name, unit="count", merge=pb.MERGE_SUM, times_first=1) for name in names)

    push(store, 1, many)
    assert len(columns_of(store, "cpu")) == MOST_COLUMNS - 2  # "ns" and "observed" were not sent
    assert store.refused("columns") == 40 * 100 - (MOST_COLUMNS - 3)
    push_rows(store, ROWS, 1)
    assert len(columns_of(store, "cpu")) == MOST_COLUMNS
    assert totals(store, column="observed") == {"web": 7, "db": 23}
    assert totals(store, column="samples") == {"web": 7 + 40 * 7, "db": 23}


def test_a_kind_of_its_own_keeps_the_column_it_counts_in(store: SqlStore) -> None:
    push(store, 1, as_kind("weather"))

    def other_first(batch: pb.FoldedBatch) -> None:
        as_kind("weather")(batch)
        batch.series[1].columns[0].name = "rain"

    push(store, 2, other_first, b"web-2")
    assert account_of(store, "web-2", "weather") == (30, 7, {MALFORMED: 23})
    assert totals(store, "weather") == {"web": 14, "db": 23}


def test_numbers_of_new_keys_stand_at_the_series_as_it_was_sent(store: SqlStore) -> None:
    batch = batch_of(ROWS)
    batch.series[0].columns[0].unit = "samples"
    appended = store.append(decoded(push_of(batch)))
    assert {index: keys.tolist() for index, keys in appended.new_key_ids.items()} == {1: [1]}
