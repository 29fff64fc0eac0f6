# SPDX-License-Identifier: Apache-2.0
"""Collects the strings of a window and turns frame codes into the tables of a batch."""

import numpy as np
import numpy.typing as npt

from agent.collect.places import BINARY_SHIFT, IN_BINARY, NUMBER_SHIFT, PlaceTable, bounded_name
from agent.collect.ragged import Index
from agent.records.binary import Binary
from agent.records.folded import Tables
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]

_OFFSET_MASK = np.uint64((1 << int(NUMBER_SHIFT)) - 1)
_PLACE_OF_BINARY = {
    pb.BINARY_KIND_ELF: pb.PLACE_KIND_FILE,
    pb.BINARY_KIND_VDSO: pb.PLACE_KIND_FILE,
    pb.BINARY_KIND_KERNEL: pb.PLACE_KIND_KERNEL,
    pb.BINARY_KIND_MODULE: pb.PLACE_KIND_MODULE,
}


class TableBuilder:
    """Tables of one batch; entry 0 of each is the empty one."""

    def __init__(self, places: PlaceTable) -> None:
        self._places = places
        self._strings: dict[bytes, int] = {b"": 0}
        self._binaries: list[pb.Binary] = [pb.Binary()]

    def string(self, text: bytes) -> int:
        """Answer the index of `text`."""
        return self._strings.setdefault(text, len(self._strings))

    def finished(self, node_parents: Index, node_frames: Index, codes: U64) -> Tables:
        """Make the tables. `codes` are the distinct frames, ascending; frame i + 1 is codes[i]; no nodes means the empty tree."""
        numbers, number_of_frame = np.unique(codes >> NUMBER_SHIFT, return_inverse=True)
        rows = [self._row(number) for number in numbers.tolist()]
        kinds, refs, tags = np.array(rows or np.zeros((0, 3)), np.uint64).T
        is_place = codes >> BINARY_SHIFT != 0
        offsets = np.where(is_place, (codes & _OFFSET_MASK) >> np.uint64(1), tags[number_of_frame])
        return Tables(
            strings=list(self._strings),
            binaries=self._binaries,
            frame_kinds=_after_empty(kinds[number_of_frame]),
            frame_refs=_after_empty(refs[number_of_frame]),
            frame_offsets=np.concatenate((np.zeros(1, np.uint64), offsets)),
            frame_is_return=_after_empty(codes & np.uint64(1)),
            node_parents=node_parents if len(node_parents) else np.zeros(1, np.int64),
            node_frames=node_frames if len(node_frames) else np.zeros(1, np.int64),
        )

    def _row(self, number: int) -> tuple[int, int, int]:
        """Answer (place kind, ref, tag) of what a frame's number stands for."""
        if number >= IN_BINARY:
            binary = self._places.binary(number - IN_BINARY)
            self._binaries.append(message_from_binary(binary))
            return (_PLACE_OF_BINARY[binary.kind], len(self._binaries) - 1, 0)
        kind, name, tag = self._places.name(number)
        return (kind, self.string(name), tag)


def message_from_binary(binary: Binary) -> pb.Binary:
    """Lay a binary out as batch.proto says."""
    return pb.Binary(
        kind=binary.kind,
        id=pb.BinaryId(build_id_kind=binary.id.build_id_kind, build_id=binary.id.build_id, content_hash=binary.id.content_hash),
        path=bounded_name(binary.path),
        segments=[
            pb.Segment(
                offset=segment.offset,
                vaddr=segment.vaddr,
                file_size_bytes=segment.file_size_bytes,
                memory_size_bytes=segment.memory_size_bytes,
                flags=segment.flags,
            )
            for segment in binary.segments
        ],
        size_bytes=binary.size_bytes,
    )


def _after_empty(values: U64) -> Index:
    """Put the empty entry 0 first."""
    return np.concatenate((np.zeros(1, np.int64), values.astype(np.int64)))
