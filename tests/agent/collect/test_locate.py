# SPDX-License-Identifier: Apache-2.0
"""Tests of places that a perf map names; those of files and of the kernel are in test_window.py."""

import numpy as np

from agent.collect.locate import Locator
from agent.collect.places import NUMBER_SHIFT, PlaceTable
from agent.records.process import Fate, MappedBinary, Mapping, MappingKind, PerfMap, Process, ProcessKey
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2 as marks


def test_addresses_take_the_names_of_a_perf_map_even_outside_executable_mappings() -> None:
    perf_map = PerfMap(np.array([0x1800, 0x5000], np.uint64), np.array([0x1807, 0x5017], np.uint64), (b"inside", b"writable now"))
    mapping = Mapping(0x1000, 0x2000, 0, (0, 0), 0, b"")
    mapped = (MappedBinary(mapping, MappingKind.JIT, None),)
    process = Process(ProcessKey(7, 23, 1), Fate.ALIVE, b"s", b"", mapped, perf_map, 0)
    places = PlaceTable()
    addresses = np.array([0x1800, 0x1806, 0x1807, 0x5016, 0x5017], np.uint64)
    codes = Locator(places).user_codes(addresses, np.zeros(5, np.int64), [process])
    found = [places.name(int(code >> NUMBER_SHIFT)) for code in codes]
    assert found == [
        (pb.PLACE_KIND_JIT, b"inside", 0),
        (pb.PLACE_KIND_JIT, b"inside", 0),
        (pb.PLACE_KIND_MARK, b"", marks.MARK_JIT),
        (pb.PLACE_KIND_JIT, b"writable now", 0),
        (pb.PLACE_KIND_MARK, b"", marks.MARK_NO_MAPPING),
    ]
