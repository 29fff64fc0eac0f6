# SPDX-License-Identifier: Apache-2.0
"""Builders of what the collector works on: drains, processes, mappings, kernel layouts; and the reader of what it makes."""

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent.records.binary import Binary, BinaryId, Segment
from agent.records.drain import CPU_KEY, CpuDrain, Stacks, StackStop, TickAccount
from agent.records.event_drain import EventAccount, EventColumn, EventDrain
from agent.records.kernel_layout import KernelLayout, KernelRange
from agent.records.process import Fate, MappedBinary, Mapping, MappingKind, PerfMap, Process, ProcessKey
from agent.records.window import WindowFacts
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns, marks_pb2
from emberwatch.v1.marks_pb2 import LossReason

PERIOD_NS = 10_101_010
NO_LAYOUT = KernelLayout(ranges=(), is_hidden=False, generation=1)


def elf(name: str, *, content: bytes = b"", build_id: bytes = b"") -> Binary:
    """An ELF binary /bin/NAME."""
    identity = BinaryId(pb.BUILD_ID_KIND_GNU, build_id or name.encode().ljust(20, b"."), content or name.encode().ljust(16, b"."))
    return Binary(pb.BINARY_KIND_ELF, identity, f"/bin/{name}".encode(), (Segment(0x1000, 0x401000, 0x9000, 0x9000, 5),), 0xA000)


def kernel_binary(name: str = "") -> Binary:
    """The kernel image, or the module with `name`."""
    kind = pb.BINARY_KIND_MODULE if name else pb.BINARY_KIND_KERNEL
    return Binary(kind, BinaryId(pb.BUILD_ID_KIND_GNU, (name or "vmlinux").encode().ljust(20, b"."), b""), name.encode(), (), 0)


def mapped(
    start: int, end: int, file_offset: int = 0, *, kind: MappingKind = MappingKind.FILE, binary: Binary | None = None
) -> MappedBinary:
    """An executable mapping and what is behind it."""
    path = binary.path if binary else b""
    return MappedBinary(Mapping(start, end, file_offset, (8, 1), 7, path), kind, binary)


def process(
    pid: int, *mappings: MappedBinary, service: bytes = b"web", fate: Fate = Fate.ALIVE, perf_map: PerfMap | None = None
) -> Process:
    """The process that rows with `pid` are of."""
    return Process(ProcessKey(pid, 1000 + pid, 1), fate, service, b"", mappings, perf_map, 1)


def layout(*ranges: tuple[int, int, Binary | None, bytes, int], is_hidden: bool = False, generation: int = 1) -> KernelLayout:
    """A kernel layout from (start, end, binary, name, tag)."""
    return KernelLayout(tuple(KernelRange(*part) for part in ranges), is_hidden, generation)


@dataclass
class DrainOf:
    """A drain that is written row by row."""

    keys: list[tuple[int, int, int, int, int, int, int, int, bytes]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    stacks: dict[int, tuple[list[int], bool]] = field(default_factory=dict)
    stops: dict[int, StackStop] = field(default_factory=dict)

    def row(
        self,
        pid: int,
        count: int,
        *,
        user: list[int] | None = None,
        kernel: list[int] | None = None,
        user_error: int = 0,
        kernel_error: int = 0,
        comm: bytes = b"main",
        is_truncated: bool = False,
        is_kernel_thread: bool = False,
        stop: StackStop = StackStop.NONE,
    ) -> "DrainOf":
        """Add `count` samples. Addresses are leaf first; `is_truncated` is of the user stack, or of the kernel's when there is no other."""
        user_hash = self._stack(user, is_truncated, stop)
        kernel_hash = self._stack(kernel, is_truncated and user is None)
        self.keys.append((1000 + pid, user_hash, kernel_hash, pid, 1, user_error, kernel_error, int(is_kernel_thread), comm))
        self.counts.append(count)
        return self

    def drain(self, *, idle: int = 0, filtered: int = 0, lost: MappingOf[LossReason, int] | None = None) -> CpuDrain:
        """The drain; its account is made so that it balances."""
        hashes = sorted(self.stacks)
        addresses = [self.stacks[one][0] for one in hashes]
        stacks = Stacks(
            hashes=np.array(hashes, np.uint64),
            bounds=np.cumsum([0, *(len(one) for one in addresses)]),
            addresses=np.array([address for one in addresses for address in one], np.uint64),
            is_truncated=np.array([self.stacks[one][1] for one in hashes], np.bool_),
            stops=np.array([self.stops[one] for one in hashes], np.uint8),
        )
        losses = dict(lost or {})
        expected = sum(self.counts) + idle + filtered + sum(losses.values())
        return CpuDrain(
            start_ns=0,
            end_ns=10 * 10**9,
            period_ns=PERIOD_NS,
            keys=np.array(self.keys, CPU_KEY),
            counts=np.array(self.counts, np.uint64),
            stacks=stacks,
            ticks=TickAccount(expected, idle, filtered, losses),
        )

    def _stack(self, addresses: list[int] | None, is_truncated: bool, stop: StackStop = StackStop.NONE) -> int:
        if addresses is None:
            return 0
        number = hash((tuple(addresses), is_truncated, int(stop))) % (1 << 62) + 1
        self.stacks[number] = (addresses, is_truncated)
        self.stops[number] = stop
        return number


def events_of(kind: str, drain: DrainOf, **fields: Any) -> EventDrain:
    """An event drain with the rows of a drain; `fields` are those of EventDrain."""
    made = drain.drain()
    columns = fields.pop("columns", (EventColumn("count", "count", pb.MERGE_SUM, made.counts),))
    account = fields.pop("account", EventAccount(int(columns[0].values.sum()), 0))
    return EventDrain(kind, made.start_ns, made.end_ns, made.keys, columns, account, made.stacks, **fields)


def facts() -> WindowFacts:
    """Facts of a window without overhead."""
    host = pb.HostFacts(host=b"web-1", kernel_release=b"6.1.0", online_cpus=2, agent_version="0.1.0", rate_hz=99, window_s=10)
    return WindowFacts(host, None)


def rows_of_batch(batch: pb.FoldedBatch) -> dict[tuple[bytes, bytes, tuple[str, ...]], int]:
    """Read a batch row by row, as batch.proto says: (service, thread, frames leaf first) -> samples.

    A frame reads "name+0xoffset" (with "*" behind it when it is a return address), "jit:name", "bpf:name#tag" or "[mark number]".
    """
    rows: dict[tuple[bytes, bytes, tuple[str, ...]], int] = {}
    for series, keys in zip(batch.series, key_texts(batch), strict=True):
        if series.kind != "cpu":
            continue
        service = next(label.value for label in series.labels if label.name == "service")
        for (thread, frames), samples in zip(keys, _column(series.columns[0].values), strict=True):
            key = (service, thread, frames)
            assert key not in rows, f"row twice: {key}"
            rows[key] = samples
    return rows


def key_texts(batch: pb.FoldedBatch) -> list[list[tuple[bytes, tuple[str, ...]]]]:
    """Read the new keys of each series: (thread, frames leaf first), frames as in rows_of_batch."""
    strings = columns.decode_strings(batch.strings, 1 << 20)
    parents, frames = _column(batch.stacks.parent_distances), _column(batch.stacks.frames)
    table = [_column(part) for part in (batch.frames.kinds, batch.frames.refs, batch.frames.offsets, batch.frames.is_return)]
    texts = [_frame_text(batch, strings, frame) for frame in zip(*table, strict=True)]
    answer = []
    for series in batch.series:
        keys = []
        for leaf, thread in zip(_column(series.new_keys.stacks), _column(series.new_keys.threads), strict=True):
            node, stack = leaf, []
            while node:
                stack.append(texts[frames[node]])
                assert parents[node] >= 1, "a parent stands before its children"
                node -= parents[node]
            keys.append((strings[thread], tuple(stack)))
        answer.append(keys)
    return answer


def assert_balanced(account: pb.Account) -> None:
    """The master test: expected = stored + idle + filtered + losses below 100."""
    lost = sum(loss.value for loss in account.losses if loss.reason < 100)
    assert account.expected == account.stored + account.idle + account.filtered + lost


def losses_of(account: pb.Account) -> dict[LossReason, int]:
    """Losses by reason."""
    return {loss.reason: loss.value for loss in account.losses}


def _column(column: pb.Column) -> list[int]:
    return [int(value) for value in columns.decode_column(column, 1 << 24)]


def _frame_text(batch: pb.FoldedBatch, strings: list[bytes], frame: tuple[int, ...]) -> str:
    kind, ref, offset, is_return = frame
    if kind == pb.PLACE_KIND_UNSPECIFIED:
        return ""
    if kind == pb.PLACE_KIND_MARK:
        return f"[{marks_pb2.Mark.Name(marks_pb2.Mark.ValueType(offset)).removeprefix('MARK_')}]"
    if kind == pb.PLACE_KIND_JIT:
        return f"jit:{strings[ref].decode(errors='backslashreplace')}"
    if kind == pb.PLACE_KIND_BPF:
        return f"bpf:{strings[ref].decode()}#{offset:x}"
    name = batch.binaries[ref].path.decode(errors="backslashreplace").removeprefix("/bin/") or "_text"
    return f"{name}+{offset:#x}{'*' if is_return else ''}"
