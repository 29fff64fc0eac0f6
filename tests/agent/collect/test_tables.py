# SPDX-License-Identifier: Apache-2.0
"""Frame codes become tables whose entry 0 is empty."""

import numpy as np

from agent.collect.places import NUMBER_SHIFT, PlaceTable
from agent.collect.tables import TableBuilder, message_from_binary
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2 as marks
from tests.support.drains import elf, kernel_binary


def test_codes_become_frames_with_what_they_refer_to() -> None:
    places = PlaceTable()
    shift = int(NUMBER_SHIFT)
    codes = [
        marks.MARK_EXITED << shift,
        places.number_of_name(pb.PLACE_KIND_BPF, b"prog", (1 << 64) - 1) << shift,
        places.number_of_binary(elf("app")) << shift | 0x10 << 1,
        places.number_of_binary(elf("app")) << shift | 0x10 << 1 | 1,
        places.number_of_binary(kernel_binary()) << shift | 0x20 << 1 | 1,
    ]
    tables = TableBuilder(places).finished(np.zeros(0, np.int64), np.zeros(0, np.int64), np.array(codes, np.uint64))
    frames = zip(tables.frame_kinds, tables.frame_refs, tables.frame_offsets, tables.frame_is_return, strict=True)
    assert [tuple(int(value) for value in frame) for frame in frames] == [
        (0, 0, 0, 0),
        (pb.PLACE_KIND_MARK, 0, marks.MARK_EXITED, 0),
        (pb.PLACE_KIND_BPF, 1, (1 << 64) - 1, 0),
        (pb.PLACE_KIND_FILE, 1, 0x10, 0),
        (pb.PLACE_KIND_FILE, 1, 0x10, 1),
        (pb.PLACE_KIND_KERNEL, 2, 0x20, 1),
    ]
    assert list(tables.strings) == [b"", b"prog"]
    assert list(tables.binaries) == [pb.Binary(), message_from_binary(elf("app")), message_from_binary(kernel_binary())]


def test_program_headers_travel_with_the_binary() -> None:
    assert message_from_binary(elf("app")).segments == [
        pb.Segment(offset=0x1000, vaddr=0x401000, file_size_bytes=0x9000, memory_size_bytes=0x9000, flags=5)
    ]
