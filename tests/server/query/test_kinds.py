# SPDX-License-Identifier: Apache-2.0
"""A kind of which only an account came can be asked like any other."""

import pytest

from server.query.complaint import QueryError
from server.query.kinds import CPU, DEFAULT_KIND, width_column, with_columns
from server.store.protocol import ColumnInfo, KindInfo
from server.store.push import ValueMerge


def test_kind_in_which_nothing_happened_has_columns_to_ask_for() -> None:
    assert with_columns(KindInfo(DEFAULT_KIND, ())) == CPU
    assert width_column(with_columns(KindInfo("tcp", ()))).name == "count"
    kind = KindInfo("tcp", (ColumnInfo("connects", "count", ValueMerge.SUM),))
    assert with_columns(kind) is kind


def test_time_is_the_width_before_counts() -> None:
    assert width_column(CPU).name == "ns"
    assert width_column(CPU, "samples").name == "samples"
    with pytest.raises(QueryError, match="no column 'nothing'"):
        width_column(CPU, "nothing")
