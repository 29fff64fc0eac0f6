# SPDX-License-Identifier: Apache-2.0
"""Builders of batches and pushes, written straight from batch.proto so that they can judge the agent and feed the server.

A frame is written as text: "app+0x1f40" is a place in the file /bin/app, "_text+0x10" one in the kernel, "ext4.ko+0x8" one in
a module, "jit:name" a named JIT frame, "bpf:name" a BPF program, "[exited]" a mark. Stacks are leaf first.
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import zstandard

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns, marks_pb2

Row = tuple[str, str, list[str], int]
"""(service, thread, frames leaf first, samples)."""

PERIOD_NS = 10_101_010
"""99 Hz."""
START_UNIX_NS = 1_700_000_000 * 10**9
WINDOW_NS = 10 * 10**9
AGENT_ID = bytes(range(16))
EPOCH_UNIX_NS = START_UNIX_NS - 3600 * 10**9

_MARKS = {
    "[truncated]": marks_pb2.MARK_TRUNCATED,
    "[exited]": marks_pb2.MARK_EXITED,
    "[exec race]": marks_pb2.MARK_EXEC_RACE,
    "[stack lost: ENOMEM]": marks_pb2.MARK_STACK_LOST_ENOMEM,
    "[stack lost: EEXIST]": marks_pb2.MARK_STACK_LOST_EEXIST,
    "[stack lost: EFAULT]": marks_pb2.MARK_STACK_LOST_EFAULT,
    "[stack lost: map full]": marks_pb2.MARK_STACK_LOST_MAP_FULL,
    "[stack lost: other]": marks_pb2.MARK_STACK_LOST_OTHER,
    "[no mapping]": marks_pb2.MARK_NO_MAPPING,
    "[anonymous]": marks_pb2.MARK_ANONYMOUS,
    "[kernel hidden]": marks_pb2.MARK_KERNEL_HIDDEN,
    "[vsyscall]": marks_pb2.MARK_VSYSCALL,
    "[unreadable file]": marks_pb2.MARK_UNREADABLE_FILE,
    "[jit]": marks_pb2.MARK_JIT,
    "[no stack]": marks_pb2.MARK_NO_STACK,
}


def binary(name: str) -> pb.Binary:
    """A binary that has `name`: "_text" is the kernel, "*.ko" a module, all else an ELF file /bin/NAME."""
    digest = hashlib.blake2b(name.encode(), digest_size=20).digest()
    if name == "_text":
        return pb.Binary(kind=pb.BINARY_KIND_KERNEL, id=pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=digest))
    if name.endswith(".ko"):
        identity = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=digest)
        return pb.Binary(kind=pb.BINARY_KIND_MODULE, id=identity, path=name.removesuffix(".ko").encode())
    identity = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=digest, content_hash=digest[:16])
    text = pb.Segment(offset=0x1000, vaddr=0x401000, file_size_bytes=0x10000, memory_size_bytes=0x10000, flags=5)
    return pb.Binary(kind=pb.BINARY_KIND_ELF, id=identity, path=f"/bin/{name}".encode(), segments=[text], size_bytes=0x20000)


@dataclass
class Tables:
    """The tables of a batch while it is built, each with its empty entry 0."""

    strings: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    binaries: dict[str, int] = field(default_factory=lambda: {"": 0})
    frames: dict[tuple[int, int, int, int], int] = field(default_factory=lambda: {(0, 0, 0, 0): 0})
    nodes: dict[tuple[int, int], int] = field(default_factory=lambda: {(0, 0): 0})

    def string(self, text: bytes) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def frame(self, text: str, is_leaf: bool) -> int:
        row = self._frame_row(text, is_leaf)
        return self.frames.setdefault(row, len(self.frames))

    def node(self, frames: Sequence[str]) -> int:
        """Insert a stack and answer its node."""
        parent = 0
        for depth, text in enumerate(reversed(frames), start=1):
            parent = self.nodes.setdefault((parent, self.frame(text, is_leaf=depth == len(frames))), len(self.nodes))
        return parent

    def _frame_row(self, text: str, is_leaf: bool) -> tuple[int, int, int, int]:
        if text in _MARKS:
            return (pb.PLACE_KIND_MARK, 0, _MARKS[text], 0)
        if text.startswith("jit:"):
            return (pb.PLACE_KIND_JIT, self.string(text[4:].encode()), 0, 0)
        if text.startswith("bpf:"):
            return (pb.PLACE_KIND_BPF, self.string(text[4:].encode()), 0x1234_5678_9ABC_DEF0, 0)
        name, offset = text.split("+0x")
        kind = {"_text": pb.PLACE_KIND_KERNEL}.get(name, pb.PLACE_KIND_MODULE if name.endswith(".ko") else pb.PLACE_KIND_FILE)
        return (kind, self.binaries.setdefault(name, len(self.binaries)), int(offset, 16), int(not is_leaf))


def batch_of(rows: Iterable[Row], *, version: str = "", host: bytes = b"web-1", losses: dict[int, int] | None = None) -> pb.FoldedBatch:
    """Build the batch of one whole window of kind cpu.

    Rows of one service make one series; the account has no idle or filtered ticks and expects what was stored plus `losses`
    (LossReason -> ticks).
    """
    tables = Tables()
    by_service: dict[str, list[tuple[int, int, int]]] = {}
    for service, thread, frames, samples in rows:
        by_service.setdefault(service, []).append((tables.node(frames), tables.string(thread.encode()), samples))
    series = [_series(service, version, keyed) for service, keyed in by_service.items()]
    stored = sum(samples for keyed in by_service.values() for *_, samples in keyed)
    lost = {reason: value for reason, value in sorted((losses or {}).items()) if value}
    account = pb.Account(
        kind="cpu",
        expected=stored + sum(value for reason, value in lost.items() if reason < 100),
        stored=stored,
        losses=[pb.Loss(reason=marks_pb2.LossReason.Name(reason), value=value) for reason, value in lost.items()],
    )
    return batch_from(tables, series, [account], host)


def batch_from(tables: Tables, series: Sequence[pb.Series], accounts: Sequence[pb.Account], host: bytes) -> pb.FoldedBatch:
    """Put tables and what refers to them together."""
    facts = pb.HostFacts(host=host, kernel_release=b"6.1.0", online_cpus=2, agent_version="0.1.0", rate_hz=99, window_s=10)
    frame_rows = list(zip(*tables.frames, strict=True))
    node_rows = list(tables.nodes)
    return pb.FoldedBatch(
        version=1,
        host=facts,
        strings=columns.encode_strings(list(tables.strings)),
        binaries=[binary(name) if name else pb.Binary() for name in tables.binaries],
        frames=pb.FrameTable(
            kinds=columns.encode_column(frame_rows[0]),
            refs=columns.encode_column(frame_rows[1]),
            offsets=columns.encode_column(frame_rows[2]),
            is_return=columns.encode_column(frame_rows[3]),
        ),
        stacks=pb.StackTable(
            parent_distances=columns.encode_column([index - parent for index, (parent, _) in enumerate(node_rows)]),
            frames=columns.encode_column([frame for _, frame in node_rows]),
        ),
        series=series,
        accounts=accounts,
    )


def _series(service: str, version: str, keyed: list[tuple[int, int, int]]) -> pb.Series:
    """Rows (node, thread, samples) as a series; the nodes may be in any order."""
    labels = [pb.Label(name="service", value=service.encode())]
    if version:
        labels.append(pb.Label(name="version", value=version.encode()))
    zeros = columns.encode_column([0] * len(keyed))
    return pb.Series(
        labels=labels,
        kind="cpu",
        new_keys=pb.KeyTable(
            stacks=columns.encode_column([node for node, _, _ in keyed]),
            seconds=zeros,
            objects=zeros,
            threads=columns.encode_column([thread for _, thread, _ in keyed]),
            classes=zeros,
        ),
        columns=[
            pb.ValueColumn(name="samples", unit="count", merge=pb.MERGE_SUM, values=columns.encode_column([n for *_, n in keyed])),
            pb.ValueColumn(name="ns", unit="ns", merge=pb.MERGE_SUM, times_first=PERIOD_NS),
            pb.ValueColumn(name="observed", unit="count", merge=pb.MERGE_SUM, times_first=1),
        ],
    )


def push_of(
    batch: pb.FoldedBatch,
    *,
    sequence: int = 1,
    agent_id: bytes = AGENT_ID,
    epoch_unix_ns: int = EPOCH_UNIX_NS,
    start_unix_ns: int = START_UNIX_NS,
    dictionary_id: bytes = b"",
) -> collector.PushRequest:
    """Wrap a batch as the agent does: one window of 10 s, one part."""
    raw = batch.SerializeToString()
    return collector.PushRequest(
        agent_id=agent_id,
        epoch_unix_ns=epoch_unix_ns,
        sequence=sequence,
        part=0,
        is_last_part=True,
        window_start_unix_ns=start_unix_ns,
        window_end_unix_ns=start_unix_ns + WINDOW_NS,
        payload=zstandard.ZstdCompressor(level=3).compress(raw),
        raw_size_bytes=len(raw),
        raw_crc32=zlib.crc32(raw),
        dictionary_id=dictionary_id,
    )
