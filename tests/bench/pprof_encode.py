# SPDX-License-Identifier: Apache-2.0
"""A pprof encoder for comparison: what a fair agent would send for the same rows.

Layout: profile.proto of google/pprof. Samples hold location ids leaf first, two values (samples, cpu ns) and the thread as a label;
locations hold mapping and address, without function or line, as an agent that leaves names to the server sends them; what has a name
and no binary (JIT, BPF, marks) is a function. Ids are dense and the frequent ones are small.
"""

import gzip

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns

Index = npt.NDArray[np.int64]

_IN_BINARIES = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)


def gzipped_pprofs(batch: pb.FoldedBatch, period_ns: int, *, is_sorted: bool = False, level: int = 6) -> list[bytes]:
    """Encode a batch that has all its frames: one gzipped profile for each series of kind cpu.

    Samples stand in the order of a hash map, as an agent meets them that empties its map of counts; or, when `is_sorted`, by stack, as
    no such agent is known to do, which makes gzip's work a quarter easier.
    """
    return [gzip.compress(_profile(batch, series, period_ns, is_sorted), level, mtime=0) for series in batch.series if series.kind == "cpu"]


def _profile(batch: pb.FoldedBatch, series: pb.Series, period_ns: int, is_sorted: bool) -> bytes:
    strings, table = columns.decode_strings(batch.strings, 1 << 24), batch.frames
    parents = np.arange(len(batch.stacks.parent_distances.data) // batch.stacks.parent_distances.width)
    parents = parents - _column(batch.stacks.parent_distances)
    node_frames = _column(batch.stacks.frames)
    leaves, samples = _column(series.new_keys.stacks), _column(series.columns[0].values)
    hashed = np.arange(len(leaves)) if is_sorted else np.random.default_rng(7).permutation(len(leaves))
    stacks = _stacks(parents, node_frames, leaves[hashed])
    frames, location, uses = np.unique(np.concatenate(stacks), return_inverse=True, return_counts=True)
    rank = np.empty(len(frames), np.int64)
    rank[np.argsort(-uses, kind="stable")] = np.arange(1, len(frames) + 1)
    location = rank[location]
    words: dict[bytes, int] = {b"": 0}
    for word in (b"samples", b"count", b"cpu", b"nanoseconds", b"thread"):
        words[word] = len(words)
    threads = [words.setdefault(strings[thread], len(words)) for thread in _column(series.new_keys.threads)[hashed].tolist()]
    values = samples[hashed].tolist()
    out = bytearray()
    for kind, unit in ((1, 2), (3, 4)):
        out += _field(1, _number(1, kind) + _number(2, unit))
    at = 0
    for stack, thread, value in zip(stacks, threads, values, strict=True):
        ids = location[at : at + len(stack)].tolist()
        at += len(stack)
        label = _field(3, _number(1, words[b"thread"]) + _number(2, thread))
        out += _field(2, _field(1, b"".join(map(_varint, ids))) + _field(2, _varint(value) + _varint(value * period_ns)) + label)
    rows = [column.tolist() for column in (rank, *(_column(part)[frames] for part in (table.kinds, table.refs, table.offsets)))]
    binaries = sorted({ref for kind, ref in zip(rows[1], rows[2], strict=True) if kind in _IN_BINARIES})
    for number, ref in enumerate(binaries, start=1):
        binary = batch.binaries[ref]
        words.setdefault(binary.path, len(words))
        build_id = words.setdefault(binary.id.build_id.hex().encode(), len(words))
        out += _field(3, _number(1, number) + _number(5, words[binary.path]) + _number(6, build_id))
    mappings = {ref: number for number, ref in enumerate(binaries, start=1)}
    for number, kind, ref, offset in sorted(zip(*rows, strict=True)):
        if kind in _IN_BINARIES:
            out += _field(4, _number(1, number) + _number(2, mappings[ref]) + _number(3, offset))
        else:
            name = words.setdefault(strings[ref] if kind != pb.PLACE_KIND_MARK else b"[mark %d]" % offset, len(words))
            out += _field(4, _number(1, number) + _field(4, _number(1, number))) + _field(5, _number(1, number) + _number(2, name))
    for word in words:
        out += _field(6, word)
    return bytes(out + _number(12, period_ns))


def _stacks(parents: Index, frames: Index, leaves: Index) -> list[Index]:
    """Lay every stack out leaf first."""
    stacks = []
    for leaf in leaves.tolist():
        node, stack = leaf, []
        while node:
            stack.append(frames[node])
            node = parents[node]
        stacks.append(np.array(stack, np.int64))
    return stacks


def _column(column: pb.Column) -> Index:
    return columns.decode_column(column, 1 << 26).astype(np.int64)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
