# SPDX-License-Identifier: Apache-2.0
"""Quantiles of log2 buckets lie in the right bucket and never above the largest value seen."""

import numpy as np
import pytest

from server.query.complaint import QueryError
from server.query.histogram import histogram, histograms, plain_columns, quantiles_ns, stacked
from server.store.protocol import ColumnInfo, KindInfo
from server.store.push import ValueMerge

US = 1000.0


def counts(**buckets: int) -> np.ndarray:
    row = np.zeros((1, 32), np.uint64)
    for name, count in buckets.items():
        row[0, int(name[1:])] = count
    return row


@pytest.mark.parametrize(
    ("row", "share", "most_ns", "expected"),
    [
        (counts(), 0.5, None, None),
        (counts(b0=2), 0.5, None, 0.5 * US),
        (counts(b4=100), 0.5, None, 12 * US),  # [8, 16) us, half way
        (counts(b4=100), 0.99, None, 8 * US + 0.99 * 8 * US),
        (counts(b4=98, b10=2), 0.99, None, 768 * US),  # the 99th of 100 is the first of two in [512, 1024)
        (counts(b4=100), 0.99, 9 * US, 9 * US),
        (counts(b31=7), 0.5, None, 2.0**30 * US),
        (counts(b31=7), 0.5, 2.0**33 * US, 2.0**33 * US),
        (counts(b1=1), 0.99, None, 2 * US),
    ],
)
def test_quantiles(row: np.ndarray, share: float, most_ns: float | None, expected: float | None) -> None:
    (found,) = quantiles_ns(row, share, None if most_ns is None else np.array([most_ns]))
    assert np.isnan(found) if expected is None else found == pytest.approx(expected)


KIND = KindInfo(
    "tcp",
    (
        ColumnInfo("connects", "count", ValueMerge.SUM),
        ColumnInfo("rtt_01", "count", ValueMerge.HISTOGRAM),
        ColumnInfo("rtt_00", "count", ValueMerge.HISTOGRAM),
        ColumnInfo("connect_00", "count", ValueMerge.HISTOGRAM),
        ColumnInfo("port_80", "count", ValueMerge.SUM),
    ),
)


def test_histograms_are_found_by_name_and_merge() -> None:
    assert list(histograms(KIND)) == ["rtt", "connect"]
    assert histogram(KIND, "") == [f"rtt_{bucket:02}" for bucket in range(32)]
    assert histogram(KIND, "connect")[31] == "connect_31"
    assert [column.name for column in plain_columns(KIND)] == ["connects", "port_80"]


def test_a_histogram_that_is_not_there_is_told() -> None:
    with pytest.raises(QueryError, match="no histogram 'rt'") as raised:
        histogram(KIND, "rt")
    assert raised.value.hint == "did you mean rtt?"
    with pytest.raises(QueryError, match="kind cpu has no histogram"):
        histogram(KindInfo("cpu", ()), "")


def test_absent_buckets_count_nothing() -> None:
    assert stacked({"a_01": np.array([7], np.uint64)}, ["a_00", "a_01"], 1).tolist() == [[0, 7]]
