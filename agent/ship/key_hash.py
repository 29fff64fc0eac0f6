# SPDX-License-Identifier: Apache-2.0
"""Canonical hashes of row keys: equal keys of one service have equal hashes in every batch, whatever their tables look like.

The hash never leaves the agent. It is keyed with a secret of the run, so that nobody who shapes stacks can aim at a collision.
A stack's hash is the sum of mix(frame, depth) over its frames: it is added up along the tree in log2(depth) steps over whole
arrays. Both 64 bit lanes go through each step together, as the two columns of one array.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from agent.records.folded import Folded, Rows, Tables
from agent.ship.known import KeyHashes
from emberwatch.v1 import batch_pb2 as pb

Lanes = npt.NDArray[np.uint64]

# Odd constants from splitmix64 and from the fractions of square roots; they only need to be odd and without pattern.
_STEP = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class KeyHasher:
    """Hashes the keys of batches."""

    def __init__(self, secret: bytes) -> None:
        """`secret` is 16 random bytes, drawn once per run."""
        self._secret = secret

    def hashes(self, folded: Folded) -> list[KeyHashes]:
        """Hash the new keys of each series of a batch."""
        series = folded.series
        nodes = self._nodes(folded.tables)
        strings = self._digests(folded.tables.strings)
        services = self._digests([_service(rows) for rows in series])
        counts = [len(rows.keys.stacks) for rows in series]
        lanes = np.repeat(services, counts, axis=0)
        for table, name in ((nodes, "stacks"), (nodes, "seconds"), (strings, "objects"), (strings, "threads"), (strings, "classes")):
            column = np.concatenate([getattr(rows.keys, name) for rows in series]) if series else np.zeros(0, np.int64)
            lanes = _mixed(lanes * _STEP + table.take(column, axis=0))
        halves = np.ascontiguousarray(lanes.T)
        bounds = np.cumsum([0, *counts]).tolist()
        return [KeyHashes(halves[:, bounds[i] : bounds[i + 1]]) for i in range(len(series))]

    def _nodes(self, tables: Tables) -> Lanes:
        """Hash the stack of every node."""
        parents = tables.node_parents
        depths = np.ones(len(parents), np.uint64)
        depths[0] = 0
        steps = []
        above = parents
        while above.any():
            steps.append(above)
            depths += depths[above]
            above = above[above]
        lanes = _mixed(self._frames(tables).take(tables.node_frames, axis=0) + depths[:, None] * _STEP)
        lanes[0] = 0
        for above in steps:
            lanes += lanes.take(above, axis=0)
        return lanes

    def _frames(self, tables: Tables) -> Lanes:
        binaries = self._digests([_identity(binary) for binary in tables.binaries])
        strings = self._digests(tables.strings)
        is_binary, is_string = tables.frames_with_binaries(), tables.frames_with_strings()
        refs = binaries.take(np.where(is_binary, tables.frame_refs, 0), axis=0)
        if is_string.any():
            refs[is_string] = strings[tables.frame_refs[is_string]]
        kinds = (tables.frame_kinds << 1 | tables.frame_is_return).astype(np.uint64)
        return _mixed(_mixed(refs + tables.frame_offsets[:, None] * _STEP) + kinds[:, None] * _STEP)

    def _digests(self, texts: Iterable[bytes]) -> Lanes:
        blob = b"".join([hashlib.blake2b(text, digest_size=16, key=self._secret).digest() for text in texts])
        return np.frombuffer(blob, "<u8").reshape(-1, 2)


def _mixed(lanes: Lanes) -> Lanes:
    """The finaliser of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), lane by lane."""
    lanes = (lanes ^ lanes >> np.uint64(30)) * _MIX_1
    lanes = (lanes ^ lanes >> np.uint64(27)) * _MIX_2
    return lanes ^ lanes >> np.uint64(31)


def _service(rows: Rows) -> bytes:
    """Numbers belong to a service, whatever the other labels and the kind."""
    return next((label.value for label in rows.labels if label.name == "service"), b"")


def _identity(binary: pb.Binary) -> bytes:
    """Join what tells binaries apart, each part with its length before it."""
    identity = binary.id
    parts: Sequence[bytes] = (identity.build_id, identity.content_hash, binary.path)
    return struct.pack("<BB", binary.kind, identity.build_id_kind) + b"".join(struct.pack("<I", len(part)) + part for part in parts)
