# SPDX-License-Identifier: Apache-2.0
"""Numbers of rows: exact, dense, in the order of first sight, and taken back without a trace."""

import numpy as np

from server.store.intern import InternTable


def table(seed: int = 7) -> InternTable:
    return InternTable([np.uint8, np.uint64], seed)


def test_equal_rows_get_equal_numbers_in_the_order_of_first_sight() -> None:
    numbers = table().intern([np.array([1, 2, 1, 3, 2]), np.array([5, 5, 5, 5, 5], np.uint64)])
    assert numbers.tolist() == [0, 1, 0, 2, 1]


def test_rows_that_differ_in_one_column_only_are_two() -> None:
    numbers = table().intern([np.array([1, 1, 2]), np.array([2**63, 2**63 + 1, 2**63], np.uint64)])
    assert numbers.tolist() == [0, 1, 2]


def test_no_rows_get_no_numbers() -> None:
    assert table().intern([np.zeros(0, np.uint8), np.zeros(0, np.uint64)]).size == 0


def test_numbers_agree_with_a_dict_over_many_calls() -> None:
    draw = np.random.default_rng(23)
    interned, numbers = table(), dict[tuple[int, int], int]()
    for size in (1, 7, 1000, 3, 5000, 23):
        kinds, values = draw.integers(0, 7, size), draw.integers(0, 1500, size).astype(np.uint64)
        expected = [numbers.setdefault(row, len(numbers)) for row in zip(kinds.tolist(), values.tolist(), strict=True)]
        assert interned.intern([kinds, values]).tolist() == expected
    assert len(interned) == len(numbers)
    assert list(zip(*(column.tolist() for column in interned.columns()), strict=True)) == list(numbers)


def test_truncated_rows_are_forgotten_and_their_numbers_given_again() -> None:
    for added in (1, 7, 10_000):  # the last one makes the table grow in between
        interned = table()
        first = np.arange(23, dtype=np.uint64)
        interned.intern([np.zeros(23), first])
        interned.intern([np.ones(added), np.arange(added, dtype=np.uint64)])
        interned.truncate(23)
        assert interned.intern([np.full(2, 2), np.array([1, 2], np.uint64)]).tolist() == [23, 24]
        assert interned.intern([np.zeros(23), first]).tolist() == list(range(23))


def test_rows_loaded_from_disk_are_found_again() -> None:
    interned = table()
    interned.append([np.array([1, 2], np.uint8), np.array([10, 20], np.uint64)])
    interned.append([np.array([3], np.uint8), np.array([30], np.uint64)])
    assert interned.intern([np.array([3, 9, 1]), np.array([30, 9, 10], np.uint64)]).tolist() == [2, 3, 0]


def test_arrays_handed_out_do_not_change_when_rows_are_added_or_taken_back() -> None:
    interned = table()
    interned.intern([np.array([1, 2]), np.array([1, 2], np.uint64)])
    before = interned.columns(2)
    interned.intern([np.full(5000, 3), np.arange(5000, dtype=np.uint64)])
    interned.truncate(2)
    interned.intern([np.full(9, 4), np.arange(9, dtype=np.uint64)])
    assert [column.tolist() for column in before] == [[1, 2], [1, 2]]
