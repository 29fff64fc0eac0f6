# SPDX-License-Identifier: Apache-2.0
"""Rows merged by key and series, and their bytes."""

import numpy as np

from server.store.rows import Rows, StoredRows, merge, rows_bytes, rows_bytes_by_series


def rows(series: int, keys: list[int], samples: list[int], **factors: int) -> Rows:
    return Rows(np.array(keys, np.int64), series, {"samples": np.array(samples, np.uint64)}, factors)


def test_rows_of_one_series_and_key_add_up_and_others_stay() -> None:
    merged = merge([rows(9, [3, 1], [7, 23], ns=10), rows(4, [3], [5], ns=10), rows(9, [3], [2], ns=10)], ())
    assert not isinstance(merged.series, int)
    assert list(zip(merged.keys.tolist(), merged.series.tolist(), merged.columns["samples"].tolist(), strict=True)) == [
        (1, 9, 23),
        (3, 4, 5),
        (3, 9, 9),
    ]
    assert merged.factors == {"ns": 10}


def test_factors_that_differ_become_values() -> None:
    merged = merge([rows(1, [1], [7], ns=10), rows(1, [1], [23], ns=20)], ())
    assert (merged.columns["ns"].tolist(), merged.factors) == ([7 * 10 + 23 * 20], {})


def test_column_that_a_part_lacks_is_0_there() -> None:
    merged = merge([rows(1, [1], [7], ns=10), rows(1, [2], [23])], ())
    assert merged.columns["ns"].tolist() == [70, 0]


def test_bytes_give_back_the_rows() -> None:
    for parts in ([rows(9, [1, 300], [7, 23], ns=10)], [rows(9, [1, 300], [7, 23], ns=10), rows(4, [300], [5], ns=10)]):
        before = merge(parts, ())
        after = StoredRows(rows_bytes(before)).rows()
        assert after.keys.tolist() == before.keys.tolist()
        assert np.array_equal(after.series, before.series)
        assert after.columns["samples"].tolist() == before.columns["samples"].tolist()
        assert after.factors == before.factors


def test_only_the_columns_asked_for_are_decoded() -> None:
    stored = StoredRows(rows_bytes(rows(9, [1, 2], [7, 23], ns=10)))
    assert {name: values.tolist() for name, values in stored.columns(["ns", "other"]).items()} == {"ns": [70, 230]}


def test_multiples_of_the_first_column_need_not_be_made() -> None:
    stored = StoredRows(rows_bytes(rows(9, [1, 2], [7, 23], ns=10, observed=1)))
    columns, multiples = stored.compact_columns(["ns", "observed", "samples", "other"])
    assert ({name: values.tolist() for name, values in columns.items()}, multiples) == ({"samples": [7, 23]}, {"ns": 10, "observed": 1})
    columns, multiples = stored.compact_columns(["ns"])  # The first is not asked for.
    assert ({name: values.tolist() for name, values in columns.items()}, multiples) == ({"ns": [70, 230]}, {})


def test_sums_follow_the_merge_of_each_column() -> None:
    made = Rows(np.array([1, 2]), 9, {"samples": np.array([7, 23], np.uint64), "rss": np.array([5, 3], np.uint64)}, {"ns": 10})
    assert made.sums({"rss"}) == {"samples": 30, "rss": 5, "ns": 300}


def test_rows_stand_series_by_series_and_give_back_the_same() -> None:
    before = merge([rows(9, [1, 300, 301], [7, 23, 5], ns=10), rows(4, [300], [5], ns=10), rows(7, [2, 301], [2, 3], ns=10)], ())
    spans = {4: (100, 200), 7: (2**62, 2**62 + 10), 9: (0, 300)}
    stored = StoredRows(rows_bytes_by_series(before, spans))
    firsts, ends = stored.spans() or ([], [])
    assert dict(zip(stored.series_ids().tolist(), zip(firsts, ends, strict=True), strict=True)) == spans
    sizes = stored.run_sizes()
    assert sizes is not None and (stored.series_ids().tolist(), sizes.tolist()) == ([4, 7, 9], [1, 2, 3])
    assert stored.keys().tolist() == [300, 2, 301, 1, 300, 301]
    again = merge([stored.rows()], ())
    assert again.keys.tolist() == before.keys.tolist() and np.array_equal(again.series, before.series)
    assert again.columns["samples"].tolist() == before.columns["samples"].tolist() and again.factors == before.factors
    one = StoredRows(rows_bytes_by_series(rows(9, [1, 2], [7, 23]), {}))
    assert one.spans() is None
    assert one.run_sizes() is None and one.series() is None
