# SPDX-License-Identifier: Apache-2.0
"""The index of a .dwp file gives as many units as it has, and costs no more memory than itself some times over."""

import struct
import tracemalloc

import numpy as np
import pytest

from server.symbols.dwarf.shape import DwarfError
from server.symbols.dwarf.split import index_ids


def index_of(units: int, slots: list[tuple[int, int]], order: str = "<", version: int = 2) -> bytes:
    """With one column; `slots` are ids and rows."""
    data = struct.pack(order + "4I", version, 1, units, len(slots))
    data += struct.pack(f"{order}{len(slots)}Q", *(dwo_id for dwo_id, _ in slots))
    data += struct.pack(f"{order}{len(slots)}I", *(row for _, row in slots))
    return data + struct.pack(f"{order}{1 + 2 * units}I", 1, *range(2 * units))  # Section 1, offsets, sizes.


@pytest.mark.parametrize("order", ["<", ">"])
def test_ids_of_slots_that_are_used(order: str) -> None:
    data = index_of(2, [(0, 0), ((1 << 63) + 7, 2), (0, 0), (23, 1)], order)
    assert index_ids(data, "little" if order == "<" else "big").tolist() == [(1 << 63) + 7, 23]


@pytest.mark.parametrize("slots", [[(7, 1), (23, 1)], [(7, 1), (23, 3)], [(7, 1), (11, 2), (23, 1)]])
def test_a_row_that_is_named_twice_or_is_not_there_is_refused(slots: list[tuple[int, int]]) -> None:
    with pytest.raises(DwarfError):
        index_ids(index_of(2, slots), "little")


def test_an_index_that_is_cut_or_of_another_version_is_refused() -> None:
    whole = index_of(2, [(7, 1), (23, 2)])
    for length in range(len(whole)):
        with pytest.raises((DwarfError, struct.error)):
            index_ids(whole[:length], "little")
    with pytest.raises(DwarfError, match="version 7"):
        index_ids(index_of(1, [(7, 1)], version=7), "little")


def test_a_big_index_takes_little_memory() -> None:
    units = 1 << 16
    rows = np.arange(1, units + 1, dtype="<u4")
    data = struct.pack("<4I", 2, 1, units, units) + rows.astype("<u8").tobytes() + rows.tobytes()
    data += struct.pack("<I", 1) + bytes(8 * units)
    tracemalloc.start()
    ids = index_ids(data, "little")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids.size == units
    assert most_bytes < 4 * len(data)
