# SPDX-License-Identifier: Apache-2.0
"""Turns addresses into places in files (hop 4 of the path in README).

All user addresses of a window, of all processes at once, are found with one binary search: the sorted array holds
(process index << 47 | start of mapping), so that processes lie one after another and no address meets a foreign mapping.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.collect.places import BINARY_SHIFT, NUMBER_SHIFT, OFFSET_BITS, PlaceTable
from agent.records.kernel_layout import KernelLayout
from agent.records.process import MappedBinary, MappingKind, PerfMap, Process, ProcessKey
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2 as marks

U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

ADDRESS_BITS = 47
"""User addresses on x86-64 with four-level page tables."""
_VSYSCALL_PAGE = 0xFFFF_FFFF_FF60_0000 >> 12
_PIECE = 1 << 14
"""Addresses that are looked up in one go: bounds memory, and stays in the CPU's cache."""
_MOST_PROCESSES = 256
"""Processes whose arrays are kept between windows."""

_Row = tuple[int, int, int, int]
"""(start, end, number, base) of a range."""
_NOTHING: _Row = (0, 0, marks.MARK_NO_MAPPING, 0)

_MARK_OF_KIND = {
    MappingKind.VSYSCALL: marks.MARK_VSYSCALL,
    MappingKind.ANONYMOUS: marks.MARK_ANONYMOUS,
    MappingKind.JIT: marks.MARK_JIT,
    MappingKind.UNREADABLE: marks.MARK_UNREADABLE_FILE,
}


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of addresses and what stands behind them. Row 0 is empty, so that a miss below the first range is a miss in row 0."""

    starts: U64
    ends: U64
    numbers: U64
    """As in PlaceTable."""
    bases: U64
    """Offset = address + base, modulo 2^64."""


class _JitNames:
    """The perf map of one process; names get a number when they are first met."""

    def __init__(self, perf_map: PerfMap) -> None:
        self._starts = np.concatenate((np.zeros(1, np.uint64), perf_map.starts))
        self._ends = np.concatenate((np.zeros(1, np.uint64), perf_map.ends))
        self._names = perf_map.names
        self._numbers: dict[int, int] = {}

    def numbers(self, addresses: U64, places: PlaceTable) -> U64:
        """Answer the number of the name at each address, 0 where there is none."""
        at = np.searchsorted(self._starts, addresses, side="right") - 1
        at = np.where(addresses < self._ends[at], at, 0)
        rows, inverse = np.unique(at, return_inverse=True)
        return np.array([self._number(row, places) for row in rows.tolist()], np.uint64)[inverse]

    def _number(self, row: int, places: PlaceTable) -> int:
        if row == 0:
            return 0
        number = self._numbers.get(row)
        if number is None:
            number = self._numbers[row] = places.number_of_name(pb.PLACE_KIND_JIT, self._names[row - 1])
        return number


@dataclass(frozen=True, slots=True)
class _Located:
    """What is kept of a process between windows."""

    generation: int
    ranges: _Ranges
    jit: _JitNames | None


class Locator:
    """Finds places; keeps what it made of processes and of the kernel until their generation changes."""

    def __init__(self, places: PlaceTable) -> None:
        self._places = places
        self._processes: dict[ProcessKey, _Located] = {}
        self._kernel: _Ranges | None = None
        self._kernel_generation = -1

    def user_codes(self, addresses: U64, process_at: Index, processes: Sequence[Process]) -> U64:
        """Find user addresses; `process_at` tells whose each is. Answers codes (see places.py) with is_return 0."""
        located = [self._located(process) for process in processes]
        ranges = _joined([one.ranges for one in located])
        codes = np.empty(len(addresses), np.uint64)
        for first in range(0, len(addresses), _PIECE):
            piece = slice(first, first + _PIECE)
            codes[piece] = _user_codes(addresses[piece], process_at[piece], ranges)
        if any(one.jit for one in located):
            self._name_jit(codes, addresses, process_at, located)
        return codes

    def kernel_codes(self, addresses: U64, layout: KernelLayout) -> U64:
        """Find kernel addresses. Answers codes with is_return 0."""
        if self._kernel is None or self._kernel_generation != layout.generation:
            self._kernel, self._kernel_generation = self._kernel_ranges(layout), layout.generation
        ranges = self._kernel
        at = np.searchsorted(ranges.starts, addresses, side="right") - 1
        miss = np.uint64(marks.MARK_KERNEL_HIDDEN if layout.is_hidden else marks.MARK_NO_MAPPING)
        numbers = np.where(addresses < ranges.ends[at], ranges.numbers[at], miss)
        return _codes(numbers, addresses + ranges.bases[at])

    def trim(self) -> None:
        """Forget the processes that were used least lately; for the end of a window."""
        for key in list(self._processes)[: max(0, len(self._processes) - _MOST_PROCESSES)]:
            del self._processes[key]

    def _name_jit(self, codes: U64, addresses: U64, process_at: Index, located: Sequence[_Located]) -> None:
        """Put names where a perf map has one. Files and the vDSO win: a perf map speaks only of memory without a file."""
        is_open = codes >> BINARY_SHIFT == 0
        for index, one in enumerate(located):
            if one.jit is None:
                continue
            rows = np.flatnonzero(is_open & (process_at == index))
            numbers = one.jit.numbers(addresses[rows], self._places)
            codes[rows] = np.where(numbers != 0, numbers << NUMBER_SHIFT, codes[rows])

    def _located(self, process: Process) -> _Located:
        kept = self._processes.pop(process.key, None)
        if kept is None or kept.generation != process.generation:
            jit = _JitNames(process.perf_map) if process.perf_map is not None else None
            kept = _Located(process.generation, self._process_ranges(process.mappings), jit)
        self._processes[process.key] = kept
        return kept

    def _process_ranges(self, mappings: Sequence[MappedBinary]) -> _Ranges:
        rows: list[_Row] = [_NOTHING]
        for mapped in mappings:
            mapping = mapped.mapping
            if mapping.end > 1 << ADDRESS_BITS:
                continue  # [vsyscall], which is told by its page
            number: int = _MARK_OF_KIND.get(mapped.kind, marks.MARK_UNREADABLE_FILE)
            is_near = mapping.file_offset + mapping.end - mapping.start <= 1 << OFFSET_BITS
            if mapped.kind in (MappingKind.FILE, MappingKind.VDSO) and mapped.binary is not None and is_near:
                number = self._places.number_of_binary(mapped.binary)
            rows.append((mapping.start, mapping.end, number, (mapping.file_offset - mapping.start) % (1 << 64)))
        return _ranges(rows)

    def _kernel_ranges(self, layout: KernelLayout) -> _Ranges:
        rows: list[_Row] = [_NOTHING]
        for part in layout.ranges:
            if part.binary is not None:
                number = self._places.number_of_binary(part.binary)
            else:
                number = self._places.number_of_name(pb.PLACE_KIND_BPF, part.name, part.tag)
            rows.append((part.start, part.end, number, -part.start % (1 << 64)))
        return _ranges(rows)


def _user_codes(addresses: U64, process_at: Index, ranges: _Ranges) -> U64:
    raised = addresses | process_at.astype(np.uint64) << np.uint64(ADDRESS_BITS)
    is_low = addresses < np.uint64(1 << ADDRESS_BITS)
    at = np.searchsorted(ranges.starts, raised, side="right") - 1
    numbers = np.where(is_low & (raised < ranges.ends[at]), ranges.numbers[at], np.uint64(marks.MARK_NO_MAPPING))
    if not is_low.all():
        numbers[addresses >> np.uint64(12) == _VSYSCALL_PAGE] = marks.MARK_VSYSCALL
    return _codes(numbers, addresses + ranges.bases[at])


def _codes(numbers: U64, offsets: U64) -> U64:
    """Make codes; only places in binaries keep their offset."""
    codes = numbers << NUMBER_SHIFT
    return np.where(codes >> BINARY_SHIFT != 0, codes | offsets << np.uint64(1), codes)


def _ranges(rows: Sequence[_Row]) -> _Ranges:
    starts, ends, numbers, bases = np.array(rows, np.uint64).T
    return _Ranges(starts.copy(), ends.copy(), numbers.copy(), bases.copy())


def _joined(parts: Sequence[_Ranges]) -> _Ranges:
    """Lay the ranges of processes one after another, each raised to its process's part of the number line."""
    lengths = [len(part.starts) for part in parts]
    raise_by = np.repeat(np.arange(len(parts), dtype=np.uint64) << np.uint64(ADDRESS_BITS), lengths)
    return _Ranges(
        np.concatenate([part.starts for part in parts]) + raise_by,
        np.concatenate([part.ends for part in parts]) + raise_by,
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.bases for part in parts]),
    )
