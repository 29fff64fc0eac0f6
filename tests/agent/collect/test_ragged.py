# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic of flat lists."""

import numpy as np

from agent.collect.ragged import bounds_from_lengths, flat_index


def test_lists_are_found_element_by_element() -> None:
    lengths = np.array([2, 0, 3])
    bounds = bounds_from_lengths(lengths)
    assert bounds.tolist() == [0, 2, 2, 5]
    assert flat_index(np.array([10, 99, 7]), lengths, bounds).tolist() == [10, 11, 7, 8, 9]


def test_no_lists() -> None:
    bounds = bounds_from_lengths(np.zeros(0, np.int64))
    assert (bounds.tolist(), flat_index(np.zeros(0, np.int64), np.zeros(0, np.int64), bounds).tolist()) == ([0], [])
