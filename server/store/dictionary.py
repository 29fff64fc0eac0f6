# SPDX-License-Identifier: Apache-2.0
"""The growing dictionary of one service: strings, frames, prefix tree of stacks, and row keys, each with dense numbers.

A push is interned level by level of its stack tree, because a node is (number of its parent, frame): one call of an InternTable for all
nodes of a depth. What a transaction added is taken back with `roll_back` when it does not commit, and only what was committed is seen
by `snapshot`.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.calltree import with_ancestors
from server.store.container import Container, StoredColumn, pack
from server.store.intern import InternTable
from server.store.protocol import U8, U32, U64, ServiceDictionary
from server.store.push import PushFrames, PushKeys, PushStacks

I64 = npt.NDArray[np.int64]
Sizes = tuple[int, int, int, int]

_FRAME_DTYPES = (np.uint8, np.uint32, np.uint64, np.uint8)
_NODE_DTYPES = (np.uint32, np.uint32)
_KEY_DTYPES = (np.uint32,) * 5
_BINARY_KINDS = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)
_STRING_KINDS = (pb.PLACE_KIND_JIT, pb.PLACE_KIND_BPF)
_TABLES = {
    "frames": ("kinds", "refs", "offsets", "is_return"),
    "nodes": ("parents", "frames"),
    "keys": ("stacks", "seconds", "objects", "threads", "classes"),
}


@dataclass(frozen=True, slots=True)
class PushTables:
    """Tables of one push, shared by its series."""

    strings: Sequence[bytes]
    binary_rows: I64
    """Row in the store of each binary of the push."""
    frames: PushFrames
    stacks: PushStacks
    depths: I64
    """Of each node: its number of frames."""


class GrowingDictionary:
    """One writer at a time; snapshots may be taken from any thread."""

    def __init__(self, service: str, seed: int) -> None:
        self.service = service
        self._frames = InternTable(_FRAME_DTYPES, seed)
        self._nodes = InternTable(_NODE_DTYPES, seed)
        self._keys = InternTable(_KEY_DTYPES, seed)
        self._strings: list[bytes] = [b""]
        self._string_numbers: dict[bytes, int] = {b"": 0}
        for table, dtypes in ((self._frames, _FRAME_DTYPES), (self._nodes, _NODE_DTYPES), (self._keys, _KEY_DTYPES)):
            table.append([np.zeros(1, dtype) for dtype in dtypes])
        self._committed: Sizes = self.sizes
        self._snapshot: ServiceDictionary | None = None

    @property
    def sizes(self) -> Sizes:
        """Numbers of frames, nodes, keys and strings, those not committed yet included."""
        return len(self._frames), len(self._nodes), len(self._keys), len(self._strings)

    def intern(self, tables: PushTables, keys: PushKeys) -> I64:
        """The number of each key, and with it of every frame, stack and string it needs."""
        used = with_ancestors(np.concatenate([keys.stacks, keys.seconds]), tables.stacks.parents)
        frames = _distinct(tables.stacks.frames[used], tables.frames.kinds.size)
        kinds, refs = tables.frames.kinds[frames], tables.frames.refs[frames].astype(np.int64)
        names_string, names_binary = np.isin(kinds, _STRING_KINDS), np.isin(kinds, _BINARY_KINDS)
        texts = np.concatenate([keys.objects, keys.threads, keys.classes, refs[names_string]])
        string_map = self._intern_strings(tables.strings, _distinct(texts, len(tables.strings)))
        refs[names_string] = string_map[refs[names_string]]
        refs[names_binary] = tables.binary_rows[refs[names_binary]]
        frame_map = np.zeros(tables.frames.kinds.size, np.int64)
        frame_map[frames] = self._frames.intern([kinds, refs, tables.frames.offsets[frames], tables.frames.is_return[frames]])
        node_map = self._intern_nodes(tables, used, frame_map)
        rows = [node_map[keys.stacks], node_map[keys.seconds], *(string_map[c] for c in (keys.objects, keys.threads, keys.classes))]
        return self._keys.intern(rows)

    def roll_back(self, sizes: Sizes) -> None:
        """Forget what was added since `sizes` were read."""
        frames, nodes, keys, strings = sizes
        for table, size in ((self._frames, frames), (self._nodes, nodes), (self._keys, keys)):
            table.truncate(size)
        for text in self._strings[strings:]:
            del self._string_numbers[text]
        del self._strings[strings:]

    def commit(self) -> None:
        """Show what was added to readers."""
        self._committed = self.sizes

    def snapshot(self) -> ServiceDictionary:
        """What is committed now."""
        last, sizes = self._snapshot, self._committed
        if last is not None and last.sizes == sizes:
            return last
        frames, nodes, keys = self._frames.columns(sizes[0]), self._nodes.columns(sizes[1]), self._keys.columns(sizes[2])
        stacks, seconds, objects, threads, classes = cast(tuple[U32, U32, U32, U32, U32], keys)
        made = ServiceDictionary(
            service=self.service,
            frame_kinds=cast(U8, frames[0]),
            frame_refs=cast(U32, frames[1]),
            frame_offsets=cast(U64, frames[2]),
            frame_is_return=cast(U8, frames[3]),
            node_parents=cast(U32, nodes[0]),
            node_frames=cast(U32, nodes[1]),
            key_stacks=stacks,
            key_seconds=seconds,
            key_objects=objects,
            key_threads=threads,
            key_classes=classes,
            strings=self._strings[: sizes[3]],
        )
        self._snapshot = made
        return made

    def chunk(self, since: Sizes) -> bytes:
        """What was added since `since`, as bytes for `load`."""
        tables = {"frames": self._frames, "nodes": self._nodes, "keys": self._keys}
        columns = [
            StoredColumn(f"{table}.{name}", column[start:])
            for (table, names), start in zip(_TABLES.items(), since[:3], strict=True)
            for name, column in zip(names, tables[table].columns(), strict=True)
        ]
        texts = self._strings[since[3] :]
        columns.append(StoredColumn("strings.sizes", np.array([len(text) for text in texts], np.int64)))
        columns.append(StoredColumn("strings.blob", np.frombuffer(b"".join(texts), np.uint8)))
        return pack(columns)

    def load(self, chunk: bytes) -> None:
        """Add a chunk; all chunks are loaded in the order they were made, before anything else."""
        container = Container(chunk)
        for table, names in zip((self._frames, self._nodes, self._keys), _TABLES.items(), strict=True):
            table.append([container.plain(f"{names[0]}.{name}") for name in names[1]])
        blob, start = container.plain("strings.blob").tobytes(), 0
        for size in container.plain("strings.sizes").tolist():
            self._string_numbers[blob[start : start + size]] = len(self._strings)
            self._strings.append(blob[start : start + size])
            start += size
        self.commit()

    def _intern_strings(self, strings: Sequence[bytes], used: I64) -> I64:
        numbers = np.zeros(len(strings), np.int64)
        for index in used.tolist():
            text = strings[index]
            number = self._string_numbers.get(text)
            if number is None:
                number = self._string_numbers[text] = len(self._strings)
                self._strings.append(text)
            numbers[index] = number
        return numbers

    def _intern_nodes(self, tables: PushTables, used: I64, frame_map: I64) -> I64:
        """Numbers of the used nodes, level by level from the roots."""
        parents, frames = tables.stacks.parents, tables.stacks.frames
        node_map = np.zeros(parents.size, np.int64)
        depths = tables.depths[used].astype(np.uint16)
        ordered = used[np.argsort(depths, kind="stable")]
        bounds = np.cumsum(np.bincount(depths)).tolist() if used.size else []
        for start, end in itertools.pairwise(bounds):
            level = ordered[start:end]
            node_map[level] = self._nodes.intern([node_map[parents[level]], frame_map[frames[level]]])
        return node_map


def node_depths(parents: I64) -> I64:
    """Number of frames of each node, by doubling the distance looked up: log2 of the depth passes over whole arrays.

    Every node but 0 must have a parent of a lower number; node 0 is its own.
    """
    depths = np.ones(parents.size, np.int64)
    depths[:1] = 0
    ancestors = parents
    while ancestors.any():
        depths = depths + depths[ancestors]
        ancestors = ancestors[ancestors]
    return depths


def _distinct(indices: I64, count: int) -> I64:
    """Distinct indices below `count`, ascending."""
    is_used = np.zeros(count, np.bool_)
    is_used[indices] = True
    return np.flatnonzero(is_used)
