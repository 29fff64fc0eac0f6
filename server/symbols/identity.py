# SPDX-License-Identifier: Apache-2.0
"""Which binary a table of names belongs to: kind, kind of build id, build id and content hash together (design §4).

A file without a build id, one with a zero id and two files that share an id are three different keys: names never cross.
"""

import hashlib
import struct
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from emberwatch.v1 import batch_pb2 as pb
from server.errors import BadRequest

MIN_BUILD_ID_BYTES, MAX_BUILD_ID_BYTES = 4, 64
"""See batch.proto; longer "build ids" are what a broken note yields."""
CONTENT_HASH_BYTES = 16
_KINDS_BY_OFFSET_IN_TEXT = (pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE)


@dataclass(frozen=True, slots=True)
class BinaryKey:
    """Identity of a binary with its kind; the fields are those of emberwatch.v1.BinaryId."""

    kind: int
    build_id_kind: int
    build_id: bytes
    content_hash: bytes

    @property
    def digest(self) -> str:
        """32 hex digits made of all four fields: a file name that nobody outside can choose."""
        lengths = struct.pack("<IIII", self.kind, self.build_id_kind, len(self.build_id), len(self.content_hash))
        return hashlib.blake2b(lengths + self.build_id + self.content_hash, digest_size=16).hexdigest()

    @property
    def counts_from_text(self) -> bool:
        """True for the kernel and its modules: their offsets count from the start of text and need no segments."""
        return self.kind in _KINDS_BY_OFFSET_IN_TEXT

    def flaw(self) -> str:
        """Why no names may be filed under this key; "" when they may."""
        if self.kind not in (pb.BINARY_KIND_ELF, pb.BINARY_KIND_VDSO, *_KINDS_BY_OFFSET_IN_TEXT):
            return f"unknown kind of binary {self.kind}"
        if len(self.content_hash) not in (0, CONTENT_HASH_BYTES):
            return f"content hash of {len(self.content_hash)} bytes"
        if self.build_id_kind in (pb.BUILD_ID_KIND_GNU, pb.BUILD_ID_KIND_GO):
            if not MIN_BUILD_ID_BYTES <= len(self.build_id) <= MAX_BUILD_ID_BYTES:
                return f"build id of {len(self.build_id)} bytes"
            return "" if any(self.build_id) else "build id of zeros"
        if self.build_id_kind != pb.BUILD_ID_KIND_NONE or self.build_id:
            return f"build id of unknown kind {self.build_id_kind}"
        return "" if self.content_hash else "neither build id nor content hash"


class Identified(Protocol):
    """What a binary row says of its identity (BinaryInfo of server/store/protocol.py; that would bring SQL into the jailed child)."""

    @property
    def kind(self) -> int: ...
    @property
    def build_id_kind(self) -> int: ...
    @property
    def build_id(self) -> bytes: ...
    @property
    def content_hash(self) -> bytes: ...


def key_of(binary: Identified) -> BinaryKey:
    """The key of a binary row."""
    return BinaryKey(binary.kind, binary.build_id_kind, binary.build_id, binary.content_hash)


def key_from_proto(kind: int, identity: pb.BinaryId) -> BinaryKey:
    """The key that a message claims. Raises BadRequest when there can be no such binary."""
    key = BinaryKey(int(kind), int(identity.build_id_kind), identity.build_id, identity.content_hash)
    flaw = key.flaw()
    if flaw:
        raise BadRequest(f"binary identity refused: {flaw}")
    return key


def module_name(kind: int, path: bytes) -> str:
    """What a binary is called beside its functions: "kernel", the module's name, or the base name of the path."""
    if kind == pb.BINARY_KIND_KERNEL:
        return "kernel"
    if kind == pb.BINARY_KIND_VDSO:
        return "[vdso]"
    return PurePosixPath(path.decode("utf-8", "backslashreplace")).name or "?"
