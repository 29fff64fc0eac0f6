# SPDX-License-Identifier: Apache-2.0
"""Has user stacks walked by unwind tables: tells the kernel what each process maps, and keeps that up to date.

    ProcessTable (mappings) -> Unwinder -> ResidentTables (tables by binary) -> UnwindMaps (kernel)

A process is known to the kernel from its first sight to its death, by its identity: after a fork or an exec it is another one. Until it
has been met the kernel walks it by the tables of its files, as far as they are there (agent/kernel/unwind_files.py).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.kernel.unwind_maps import UNWIND_MAPPING, TablePlace, UnwindMaps, WalkKind
from agent.process.vdso import read_image
from agent.records.binary import VDSO_STAMP, Binary, BinaryId, FileStamp
from agent.records.event_drain import WindowDrain
from agent.records.process import Fate, MappedBinary, MappingKind, Process, ProcessKey
from agent.records.unwind import TableMiss
from agent.runner.unwind_tables import Placed, ResidentTables, TableCounts, TableSource
from emberwatch.v1 import batch_pb2 as pb

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_EXECUTABLE = 1
_USER_END = 1 << 47
_MOST_KNOWN = 16_000
"""UNWIND_PROCESSES in bpf/shared/unwind.h, and a little less."""


@dataclass(slots=True)
class _Known:
    rows: npt.NDArray[np.void]
    """UNWIND_MAPPING as the kernel has it."""
    biases: Mapping[int, int]
    """By row, of those with a binary."""
    rows_of: Mapping[BinaryId, list[int]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the unwinder learns of processes and binaries."""

    find: Callable[[ProcessKey], Process]
    take_changed: Callable[[], set[ProcessKey]]
    """Processes that were found, map something else or are gone since the last call."""
    open_binary: Callable[[BinaryId], int | None]
    files_of: Callable[[BinaryId], tuple[FileStamp, ...]]
    tables: TableSource


class Unwinder:
    """For one thread."""

    def __init__(self, maps: UnwindMaps, sources: Sources) -> None:
        self._maps = maps
        self._find = sources.find
        self._open = sources.open_binary
        self._files_of = sources.files_of
        self._tables = ResidentTables(maps, sources.tables, self._open_binary, self._files_of_binary)
        self._take_changed = sources.take_changed
        self._known: dict[ProcessKey, _Known] = {}
        self._left_out: set[ProcessKey] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether tables are on their way, so that catch_up() should be called soon."""
        return self._tables.is_waiting

    def catch_up(self) -> None:
        """After the process table was told of something: processes that changed, and tables that have come."""
        arrived = self._tables.arrived()
        changed = self._take_changed()
        for key in changed:
            self._publish(key)
        for key, binaries in arrived.items():
            if key not in changed and key in self._known:
                self._repair(key, binaries)

    def end_window(self, samples: Mapping[ProcessKey, int]) -> None:
        """After a drain, and after the process table has brought those with samples up to date and dropped its dead."""
        self.catch_up()
        for key in self._tables.end_window(samples):
            self._publish(key)
        for key in tuple(self._left_out):
            if key in self._known:
                self._place(key)
            elif len(self._known) < _MOST_KNOWN:
                self._publish(key)

    def forget(self, keys: Iterable[ProcessKey]) -> None:
        """Processes that are gone."""
        for key in keys:
            self._left_out.discard(key)
            known = self._known.pop(key, None)
            if known is not None:
                self._maps.remove_process(key)
                self._tables.leave(key, known.rows_of)

    def counts(self) -> TableCounts:
        return self._tables.counts()

    @property
    def left_out(self) -> int:
        """Processes of whose mappings the kernel was not told, for want of room; they are tried again after each window."""
        return len(self._left_out)

    def _publish(self, key: ProcessKey) -> None:
        process = self._find(key)
        if process.fate is not Fate.ALIVE:
            self.forget((key,))
            return
        if key not in self._known and len(self._known) >= _MOST_KNOWN:
            self._left_out.add(key)
            return
        rows: list[tuple[int, ...]] = []
        biases: dict[int, int] = {}
        rows_of: dict[BinaryId, list[int]] = {}
        for mapped in process.mappings:
            if mapped.mapping.end > _USER_END:
                continue  # [vsyscall]: three instructions.
            bias = _bias(mapped)
            if mapped.binary is not None and bias is not None:
                biases[len(rows)] = bias
                rows_of.setdefault(mapped.binary.id, []).append(len(rows))
            rows.append(self._row(key, mapped, bias))
        before = self._known.get(key)
        self._known[key] = _Known(np.array(rows, UNWIND_MAPPING), biases, rows_of)
        self._place(key)
        if before is not None:
            self._tables.leave(key, before.rows_of.keys() - rows_of.keys())

    def _repair(self, key: ProcessKey, binaries: Iterable[BinaryId]) -> None:
        """The tables of some binaries came or went: only their rows change."""
        known = self._known[key]
        rows = known.rows.copy()  # What the kernel maps were given stays as it is.
        for binary_id in binaries:
            for at in known.rows_of.get(binary_id, ()):
                rows[at] = (*rows[at].item()[:2], *_how(self._tables.placed(binary_id), known.biases[at]))
        known.rows = rows
        self._place(key)

    def _place(self, key: ProcessKey) -> None:
        if self._maps.set_process(key, self._known[key].rows):
            self._left_out.discard(key)
        else:
            self._left_out.add(key)

    def _row(self, key: ProcessKey, mapped: MappedBinary, bias: int | None) -> tuple[int, ...]:
        mapping = mapped.mapping
        if mapped.kind in (MappingKind.ANONYMOUS, MappingKind.JIT):
            return mapping.start, mapping.end, 0, 0, 0, 0, WalkKind.JIT
        if mapped.binary is None or bias is None:
            return mapping.start, mapping.end, 0, 0, 0, 0, WalkKind.NO_TABLE
        return mapping.start, mapping.end, *_how(self._tables.use(key, mapped.binary), bias)

    def _open_binary(self, binary: Binary) -> int | None:
        if binary.kind != pb.BINARY_KIND_VDSO:
            return self._open(binary.id)
        fd = os.memfd_create("vdso")
        os.write(fd, read_image())
        return fd

    def _files_of_binary(self, binary: Binary) -> tuple[FileStamp, ...]:
        return (VDSO_STAMP,) if binary.kind == pb.BINARY_KIND_VDSO else self._files_of(binary.id)


def samples_by_process(drain: WindowDrain) -> dict[ProcessKey, int]:
    """Samples and events with stacks of each process in a window, kernel threads left out."""
    with_stacks = [event for event in drain.events if event.stacks is not None]
    keys = np.concatenate([drain.cpu.keys, *(event.keys for event in with_stacks)])
    counts = np.concatenate([drain.cpu.counts, *(event.columns[0].values for event in with_stacks)])
    is_user = keys["is_kernel_thread"] == 0
    keys, counts = keys[is_user], counts[is_user]
    if not len(keys):
        return {}
    order = np.lexsort((keys["exec_id"], keys["start_boot_ns"], keys["pid"]))
    parts = [keys[name][order] for name in ("pid", "start_boot_ns", "exec_id")]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.logical_or.reduce([part[1:] != part[:-1] for part in parts])
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(counts[order], firsts).tolist()
    columns = (part[firsts].tolist() for part in parts)
    return {ProcessKey(*key): count for key, count in zip(zip(*columns, strict=True), sums, strict=True)}


def _how(placed: Placed, bias: int) -> tuple[int, int, int, int, int]:
    if isinstance(placed, TablePlace):
        return bias, placed.first_page, placed.low_page, placed.page_count, WalkKind.TABLE
    return 0, 0, 0, 0, WalkKind.FRAME_POINTERS if placed is TableMiss.NO_RULES else WalkKind.NO_TABLE


def _bias(mapped: MappedBinary) -> int | None:
    """Address in the process - address in the file, modulo 2^64; None when no executable segment lies behind the mapping."""
    mapping, binary = mapped.mapping, mapped.binary
    for segment in binary.segments if binary is not None else ():
        first = segment.offset // _PAGE_BYTES * _PAGE_BYTES
        if segment.flags & _EXECUTABLE and first <= mapping.file_offset < segment.offset + segment.file_size_bytes:
            return (mapping.start - mapping.file_offset + segment.offset - segment.vaddr) % (1 << 64)
    return None
