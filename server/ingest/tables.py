# SPDX-License-Identifier: Apache-2.0
"""The tables of a batch: strings, binaries, frames and stacks, decoded as whole arrays and checked before anything uses them."""

from collections.abc import Sequence

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from server.errors import BadRequest, LimitExceeded
from server.ingest.checks import U64, bounded, check_below, column, column_of, indices
from server.ingest.limits import IngestLimits
from server.store.dictionary import node_depths
from server.store.push import PushBinary, PushFrames, PushStacks

_MOST_SIZE = 1 << 62
_BINARIES_OF = {
    pb.PLACE_KIND_FILE: (pb.BINARY_KIND_ELF, pb.BINARY_KIND_VDSO),
    pb.PLACE_KIND_KERNEL: (pb.BINARY_KIND_KERNEL,),
    pb.PLACE_KIND_MODULE: (pb.BINARY_KIND_MODULE,),
}
_STRING_KINDS = (pb.PLACE_KIND_JIT, pb.PLACE_KIND_BPF)


def decode_strings(table: pb.StringTable, limits: IngestLimits) -> list[bytes]:
    """Strings; a table that was left out holds the empty one."""
    sizes = column(table.sizes, limits.table_entries, "strings")
    if sizes.size and int(sizes.max()) > limits.name_bytes:
        raise LimitExceeded(f"a name has {int(sizes.max())} bytes; the limit is {limits.name_bytes}")
    strings = columns.decode_strings(table, limits.table_entries) or [b""]
    if strings[0]:
        raise BadRequest("entry 0 of the strings is not empty")
    return strings


def decode_binaries(binaries: Sequence[pb.Binary], limits: IngestLimits) -> list[PushBinary]:
    """Binaries; entry 0 stands for none."""
    found = [_binary(binary, limits) for binary in bounded(binaries, limits.binaries, "binaries")[1:]]
    return [PushBinary(0, 0, b"", b"", b"", (), 0), *found]


def decode_frames(table: pb.FrameTable, binaries: Sequence[PushBinary], strings: int, limits: IngestLimits) -> PushFrames:
    """Frames, each with a kind that is known and a reference that leads to what its kind says."""
    kinds = column(table.kinds, limits.table_entries, "frames")
    if not kinds.size:
        zero = np.zeros(1, np.uint64)
        return PushFrames(zero, zero, zero, zero)
    refs, offsets, is_return = (column_of(c, kinds.size, "columns of the frames") for c in (table.refs, table.offsets, table.is_return))
    if kinds[0] or refs[0] or offsets[0] or is_return[0]:
        raise BadRequest("entry 0 of the frames is not empty")
    _check_frames(kinds[1:], refs[1:], binaries, strings)
    check_below(is_return, 2, "is_return of the frames")
    if np.any((kinds == pb.PLACE_KIND_MARK) & ((offsets == 0) | (offsets > 0xFFFF))):
        raise BadRequest("a frame is a mark without a number")
    return PushFrames(kinds, refs, offsets, is_return)


def decode_stacks(table: pb.StackTable, frames: int, limits: IngestLimits) -> PushStacks:
    """Nodes, parents before children, no stack deeper than the limit."""
    distances = column(table.parent_distances, limits.table_entries, "stacks")
    if not distances.size:
        return PushStacks(np.zeros(1, np.int64), np.zeros(1, np.int64))
    node_frames = indices(table.frames, distances.size, frames, "frames of the stacks")
    numbers = np.arange(distances.size, dtype=np.uint64)
    if distances[0] or node_frames[0]:
        raise BadRequest("entry 0 of the stacks is not empty")
    if np.any(distances[1:] == 0) or np.any(distances > numbers):
        raise BadRequest("a node of the stacks does not stand behind its parent")
    if np.any(node_frames[1:] == 0):
        raise BadRequest("a node of the stacks has no frame")
    parents = (numbers - distances).astype(np.int64)
    ancestors = parents
    for _ in range(limits.stack_frames.bit_length()):
        ancestors = ancestors[ancestors]
    # Deeper than twice the limit at once: no passes over a chain of a million nodes to learn how deep.
    depth = 2 * limits.stack_frames if ancestors.any() else int(node_depths(parents).max())
    if depth > limits.stack_frames:
        raise LimitExceeded(f"a stack has {depth} frames or more; the limit is {limits.stack_frames}")
    return PushStacks(parents, node_frames)


def _check_frames(kinds: U64, refs: U64, binaries: Sequence[PushBinary], strings: int) -> None:
    binary_kinds = np.array([binary.kind for binary in binaries], np.uint64)
    known = np.zeros(kinds.size, np.bool_)
    for kind, wanted in _BINARIES_OF.items():
        is_kind = kinds == kind
        check_below(refs[is_kind], len(binaries), "binaries of the frames")
        if not np.isin(binary_kinds[refs[is_kind].astype(np.int64)], wanted).all():
            raise BadRequest(f"a frame of kind {pb.PlaceKind.Name(kind)} is in a binary of another kind")
        known |= is_kind
    is_string, is_mark = np.isin(kinds, _STRING_KINDS), kinds == pb.PLACE_KIND_MARK
    check_below(refs[is_string], strings, "names of the frames")
    check_below(refs[is_mark], 1, "references of marks")
    if not np.all(known | is_string | is_mark):
        raise BadRequest(f"a frame has kind {int(kinds[~(known | is_string | is_mark)][0])}, which this server does not know")


def _binary(binary: pb.Binary, limits: IngestLimits) -> PushBinary:
    identity = binary.id
    if binary.kind not in pb.BinaryKind.values()[1:] or identity.build_id_kind not in pb.BuildIdKind.values():
        raise BadRequest(
            f"a binary has kind {binary.kind} with a build id of kind {identity.build_id_kind}; this server does not know them"
        )
    if len(identity.build_id) not in (0, *range(4, 65)) or len(identity.content_hash) not in (0, 16):
        raise BadRequest(f"a binary has a build id of {len(identity.build_id)} bytes and a content hash of {len(identity.content_hash)}")
    if len(binary.path) > limits.name_bytes:
        raise LimitExceeded(f"the path of a binary has {len(binary.path)} bytes; the limit is {limits.name_bytes}")
    segments = tuple(
        (segment.offset, segment.vaddr, segment.file_size_bytes, segment.memory_size_bytes, segment.flags)
        for segment in bounded(binary.segments, limits.segments, "segments of a binary")
    )
    if binary.size_bytes > _MOST_SIZE:
        raise BadRequest(f"a binary of {binary.size_bytes} bytes cannot be")
    return PushBinary(
        binary.kind, identity.build_id_kind, identity.build_id, identity.content_hash, binary.path, segments, binary.size_bytes
    )
