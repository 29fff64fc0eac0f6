# SPDX-License-Identifier: Apache-2.0
"""Turns ELF notes into a build id; the same for program files, the vDSO, the kernel and its modules.

A note is judged by (owner, type), never by type alone: type 3 means other things to other owners. Hostile notes end the walk.
Layout: ELF gABI, "Note Section": namesz, descsz, type as 32-bit words, then name and description, each padded.
"""

import struct
from collections.abc import Iterator

from emberwatch.v1 import batch_pb2 as pb

MIN_BYTES, MAX_BYTES = 4, 64
_GNU, _NT_GNU_BUILD_ID = b"GNU\0", 3
_GO, _NT_GO_BUILD_ID = b"Go\0\0", 4
_HEADER_BYTES = 12


def build_id_from_notes(notes: bytes, alignment: int, order: str = "<") -> tuple[pb.BuildIdKind, bytes]:
    """The GNU build id in `notes`, else Go's, else (BUILD_ID_KIND_NONE, b""). All-zero ids and ids of odd length are none.

    `alignment` is p_align of the segment: 8 pads to 8 bytes, anything else to 4. `order` is "<" or ">". Go's ids of over 64 bytes
    are given by their last part, the id of the content.
    """
    go = b""
    for owner, kind, description in _notes(notes, 8 if alignment == 8 else 4, order):
        if owner == _GNU and kind == _NT_GNU_BUILD_ID and _is_usable(description):
            return pb.BUILD_ID_KIND_GNU, description
        if owner == _GO[: len(owner)] and owner[:3] == b"Go\0" and kind == _NT_GO_BUILD_ID and not go:
            go = description if len(description) <= MAX_BYTES else description.rpartition(b"/")[2]
    if _is_usable(go):
        return pb.BUILD_ID_KIND_GO, go
    return pb.BUILD_ID_KIND_NONE, b""


def _is_usable(build_id: bytes) -> bool:
    return MIN_BYTES <= len(build_id) <= MAX_BYTES and any(build_id)


def _notes(notes: bytes, padding: int, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    at = 0
    while at + _HEADER_BYTES <= len(notes):
        name_bytes, description_bytes, kind = struct.unpack_from(order + "III", notes, at)
        name_at = at + _HEADER_BYTES
        description_at = _padded(name_at + name_bytes, padding)
        end = description_at + description_bytes
        if name_at + name_bytes > len(notes) or end > len(notes):
            return
        yield notes[name_at : name_at + name_bytes], kind, notes[description_at:end]
        at = _padded(end, padding)


def _padded(value: int, padding: int) -> int:
    return (value + padding - 1) // padding * padding
