# SPDX-License-Identifier: Apache-2.0
"""A kind of which only an account came can be asked like any other."""

import pytest

from server.query.complaint import QueryError
from server.query.kinds import CPU, DEFAULT_KIND, kinds_to_ask, width_column, with_columns
from server.store.protocol import ColumnInfo, KindInfo
from server.store.push import ValueMerge


def test_kind_in_which_nothing_happened_has_columns_to_ask_for() -> None:
    assert with_columns(KindInfo(DEFAULT_KIND, ())) == CPU
    assert width_column(with_columns(KindInfo("tcp", ()))).name == "events"
    assert width_column(with_columns(KindInfo("lock", ()))).name == "ns"
    assert width_column(with_columns(KindInfo("of next year", ()))).name == "count"


def test_a_kind_that_agents_know_can_be_asked_for_before_any_was_stored() -> None:
    stored = KindInfo("lock", (ColumnInfo("count", "count", ValueMerge.SUM),))
    kinds = kinds_to_ask([stored])
    assert kinds["lock"] == stored
    assert set(kinds) == {"cpu", "offcpu", "runqueue", "time", "lock", "lock_hold", "syscall", "syscall_stack", "tcp", "tcp_stack"}
    kind = KindInfo("tcp", (ColumnInfo("connects", "count", ValueMerge.SUM),))
    assert with_columns(kind) is kind


def test_time_is_the_width_before_counts() -> None:
    assert width_column(CPU).name == "ns"
    assert width_column(CPU, "samples").name == "samples"
    with pytest.raises(QueryError, match="no column 'nothing'"):
        width_column(CPU, "nothing")
