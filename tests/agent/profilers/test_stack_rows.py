# SPDX-License-Identifier: Apache-2.0
"""Rows of the map of stacks become columns, sorted by hash, each as long as its stack."""

import numpy as np
import numpy.typing as npt

from agent.profilers.stack_rows import STACK_VALUE, stacks_from_rows
from agent.records.drain import StackStop


def rows(*stacks: tuple[int, list[int]], stop: StackStop = StackStop.NONE) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.void]]:
    values = np.zeros(len(stacks), STACK_VALUE)
    for value, (_, addresses) in zip(values, stacks, strict=True):
        value["length"], value["stop"] = len(addresses), stop
        value["addresses"][: len(addresses)] = addresses
    return np.array([stack_hash for stack_hash, _ in stacks], "<u8"), values


def test_stacks_of_all_pieces_come_out_sorted_by_hash() -> None:
    high = 0xFFFF_FFFF_FFFF_FFF0
    found = stacks_from_rows([rows((high, [1, 2, 3]), (7, [4])), rows((23, [5, 6]))], 127)
    assert found.hashes.tolist() == [7, 23, high]
    assert found.bounds.tolist() == [0, 1, 3, 6]
    assert found.addresses.tolist() == [4, 5, 6, 1, 2, 3]
    assert found.is_truncated.tolist() == [False, False, False]


def test_stack_as_long_as_the_limit_is_truncated() -> None:
    found = stacks_from_rows([rows((1, list(range(1, 128))), (2, list(range(1, 127))))], 127)
    assert found.is_truncated.tolist() == [True, False]
    assert np.diff(found.bounds).tolist() == [127, 126]


def test_walk_that_says_how_it_ended_is_believed() -> None:
    full = list(range(1, 128))
    pieces = [rows((1, full), stop=StackStop.BOTTOM), rows((2, full), stop=StackStop.CAP), rows((3, full), stop=StackStop.NO_TABLE)]
    found = stacks_from_rows(pieces, 127)
    assert found.is_truncated.tolist() == [False, True, True]
    assert found.stops.tolist() == [StackStop.BOTTOM, StackStop.CAP, StackStop.NO_TABLE]


def test_lower_limit_of_the_kernel_is_obeyed() -> None:
    assert stacks_from_rows([rows((1, [1] * 20), (2, [1] * 19))], 20).is_truncated.tolist() == [True, False]


def test_length_beyond_the_row_is_cut() -> None:
    hashes, values = rows((1, [9]))
    values["length"] = 1 << 31
    assert np.diff(stacks_from_rows([(hashes, values)], 127).bounds).tolist() == [127]


def test_nothing_yields_empty_columns() -> None:
    found = stacks_from_rows([], 127)
    assert (found.hashes.tolist(), found.bounds.tolist(), found.addresses.tolist(), found.is_truncated.tolist()) == ([], [0], [], [])


def test_row_is_a_kibibyte() -> None:
    assert STACK_VALUE.itemsize == 1024
