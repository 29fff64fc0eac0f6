# SPDX-License-Identifier: Apache-2.0
"""A binary as the agent knows it; the fields are those of emberwatch.v1.Binary."""

from dataclasses import dataclass
from typing import NamedTuple

from emberwatch.v1 import batch_pb2 as pb


class BinaryId(NamedTuple):
    """Identity of a binary; see emberwatch.v1.BinaryId for the meaning of each part. A tuple, for it is looked up all the time."""

    build_id_kind: pb.BuildIdKind
    build_id: bytes
    content_hash: bytes


class FileStamp(NamedTuple):
    """One content of one file, on whatever device."""

    inode: int
    size_bytes: int
    changed_ns: int
    """Its ctime."""


VDSO_STAMP = FileStamp(0, 0, 0)
"""The vDSO has no file."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A PT_LOAD program header."""

    offset: int
    vaddr: int
    file_size_bytes: int
    memory_size_bytes: int
    flags: int


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary that frames refer to."""

    kind: pb.BinaryKind
    id: BinaryId
    path: bytes
    segments: tuple[Segment, ...]
    size_bytes: int
