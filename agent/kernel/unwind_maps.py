# SPDX-License-Identifier: Apache-2.0
"""The kernel's unwind tables, filled through shared memory; the side of BPF is bpf/shared/unwind.h.

What is new is written before it is named, and what is given up stays as it is until settle(), which is called when every handler
that might still read it has ended (agent/kernel/buffers.py, flip). So a walk sees the old or the new, never a mixture.
"""

import errno
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import bpf
from agent.kernel.ranges import Ranges
from agent.kernel.unwind_files import UnwindFiles
from agent.kernel.unwind_rows import RULES, PackedTable, RuleNumbers, pack_table
from agent.records.process import ProcessKey
from agent.records.unwind import UnwindTable

UNWIND_MAPS = ("unwind_rows", "unwind_pages", "unwind_rules", "unwind_mappings", "unwind_processes", "unwind_files", "unwinders")
ROWS, PAGES, MAPPINGS = 1 << 22, 1 << 19, 1 << 16
MOST_MAPPINGS = 4096
"""Executable mappings of one process."""
UNWIND_MAPPING = np.dtype(
    [
        ("start", "<u8"),
        ("end", "<u8"),
        ("bias", "<u8"),  # address in the process - address in the file, modulo 2^64
        ("first_page", "<u4"),
        ("low_page", "<u4"),
        ("page_count", "<u4"),
        ("kind", "<u4"),
    ]
)
"""struct unwind_mapping in bpf/shared/unwind.h."""
_PROCESS_KEY = struct.Struct("<QII")
_PROCESS = struct.Struct("<IIQ")
"""struct unwind_process: first, count, when it was told last that they do not hold."""


class Walker(IntEnum):
    """Programs that a walk goes on in; enum walker in bpf/shared/scratch.h."""

    UNWIND = 0
    LOOK = 1
    """Looks up code that is not known yet; not there on old kernels."""


class WalkKind(IntEnum):
    """How code in a mapping is walked; enum mapping_kind in bpf/shared/unwind.h."""

    NO_TABLE = 0
    """Not at all: there are rules, but they are not here (yet)."""
    TABLE = 1
    FRAME_POINTERS = 2
    """A file without rules, such as Go makes: it is built to be walked so."""
    JIT = 3
    """Memory without a file: by frame pointers, if rbp looks like one."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a table lies in the maps."""

    first_row: int
    row_count: int
    first_page: int
    page_count: int
    low_page: int


@dataclass(slots=True)
class _MappingRange:
    first: int
    count: int
    content: bytes
    users: int


class UnwindMaps:
    """For one thread. Ranges of mappings that are alike (forked processes) are kept once."""

    def __init__(self, maps: Mapping[str, int], walkers: Mapping[Walker, int]) -> None:
        """`maps` are the descriptors of UNWIND_MAPS, `walkers` those of programs. The caller keeps them open."""
        self.files = UnwindFiles(maps["unwind_files"])
        self._process_map = maps["unwind_processes"]
        self._rows = _SharedArray(maps["unwind_rows"], np.dtype("<u4"), ROWS)
        self._pages = _SharedArray(maps["unwind_pages"], np.dtype("<u8"), PAGES)
        self._rules = _SharedArray(maps["unwind_rules"], np.dtype("<u8"), RULES)
        self._mappings = _SharedArray(maps["unwind_mappings"], UNWIND_MAPPING, MAPPINGS)
        self._numbers = RuleNumbers()
        self._written_rules = 0
        self._free_rows, self._free_pages, self._free_mappings = Ranges(ROWS), Ranges(PAGES), Ranges(MAPPINGS)
        self._retired: list[tuple[Ranges, int, int]] = []
        self._by_content: dict[bytes, _MappingRange] = {}
        self._of_process: dict[ProcessKey, _MappingRange] = {}
        for walker, program in walkers.items():
            bpf.update(maps["unwinders"], walker.to_bytes(4, "little"), program.to_bytes(4, "little"))

    @property
    def free_rows(self) -> int:
        """Rows that a table could have now, if they lie together."""
        return self._free_rows.free_elements

    def has_room(self, rows: int) -> bool:
        """Whether there is a place for so many rows, before they are laid out."""
        return self._free_rows.has_room(rows)

    @property
    def retired_rows(self) -> int:
        """Rows that will be free after settle()."""
        return sum(count for ranges, _, count in self._retired if ranges is self._free_rows)

    @property
    def rules_refused(self) -> int:
        """Rules that found no number, since the start; their rows say "unsupported"."""
        return self._numbers.refused

    def pack(self, table: UnwindTable) -> PackedTable | None:
        """Lay a table out for put_table; None when it is empty or covers too much."""
        return pack_table(table, self._numbers)

    def put_table(self, packed: PackedTable) -> TablePlace | None:
        """Write a table; None when there is no room."""
        row_count, page_count = len(packed.rows), len(packed.page_starts)
        first_row = self._free_rows.take(row_count)
        if first_row is None:
            return None
        first_page = self._free_pages.take(page_count)
        if first_page is None:
            self._free_rows.give_back(first_row, row_count)
            return None
        known = self._numbers.rules
        self._rules.write(self._written_rules, known[self._written_rules :])
        self._written_rules = len(known)
        self._rows.write(first_row, packed.rows)
        starts = packed.page_starts.astype(np.uint64) + np.uint64(first_row)
        self._pages.write(first_page, starts | packed.page_counts.astype(np.uint64) << np.uint64(32))
        return TablePlace(first_row, row_count, first_page, page_count, packed.low_page)

    def give_up_table(self, place: TablePlace) -> None:
        """No process names it any more: its room is free after settle()."""
        self._retired.append((self._free_rows, place.first_row, place.row_count))
        self._retired.append((self._free_pages, place.first_page, place.page_count))

    def set_process(self, key: ProcessKey, mappings: npt.NDArray[np.void]) -> bool:
        """Have stacks of a process walked by these mappings (UNWIND_MAPPING, sorted by start). False when there is no room."""
        if len(mappings) > MOST_MAPPINGS:
            self.remove_process(key)
            return False
        fresh = self._range_of(mappings)
        if fresh is None:
            self.remove_process(key)
            return False
        old = self._of_process.get(key)
        try:
            bpf.update(self._process_map, _key_bytes(key), _PROCESS.pack(fresh.first, fresh.count, 0))
        except OSError as error:
            self._release(fresh)
            if error.errno != errno.E2BIG:
                raise KernelError(f"cannot have process {key.pid} unwound: {error.strerror}") from error
            return False
        self._of_process[key] = fresh
        if old is not None:
            self._release(old)
        return True

    def remove_process(self, key: ProcessKey) -> None:
        """Have stacks of a process walked by frame pointers again."""
        old = self._of_process.pop(key, None)
        if old is not None:
            bpf.delete(self._process_map, _key_bytes(key))
            self._release(old)

    def settle(self) -> None:
        """Take back what was given up. Call it when no handler runs that began before the last change."""
        for ranges, start, count in self._retired:
            ranges.give_back(start, count)
        self._retired.clear()

    def _range_of(self, mappings: npt.NDArray[np.void]) -> _MappingRange | None:
        content = mappings.tobytes()
        known = self._by_content.get(content)
        if known is not None:
            known.users += 1
            return known
        first = self._free_mappings.take(len(mappings))
        if first is None:
            return None
        self._mappings.write(first, mappings)
        made = self._by_content[content] = _MappingRange(first, len(mappings), content, 1)
        return made

    def _release(self, old: _MappingRange) -> None:
        old.users -= 1
        if not old.users:
            del self._by_content[old.content]
            self._retired.append((self._free_mappings, old.first, old.count))


class _SharedArray:
    """A BPF array that is written by mapping it, for a batch call takes each element by itself.

    Only the pages that are written are mapped, and only while they are: the kernel counts every mapped page of an array as resident in
    this process (remap_vmalloc_range), 20 MiB for all of them.
    """

    def __init__(self, descriptor: int, kind: np.dtype[Any], count: int) -> None:
        self._descriptor, self._kind, self._count = descriptor, kind, count

    def write(self, first: int, values: npt.NDArray[Any]) -> None:
        """Put `values` at element `first` and behind it."""
        assert first + len(values) <= self._count
        if not len(values):
            return
        start, size = first * self._kind.itemsize, len(values) * self._kind.itemsize
        skipped = start % mmap.ALLOCATIONGRANULARITY
        try:
            memory = mmap.mmap(self._descriptor, skipped + size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=start - skipped)
        except OSError as error:
            raise KernelError(f"cannot map {size} bytes of a BPF array: {error.strerror}") from error
        with memory:
            np.frombuffer(memory, self._kind, len(values), skipped)[:] = values


def _key_bytes(key: ProcessKey) -> bytes:
    return _PROCESS_KEY.pack(key.start_boot_ns, key.pid, key.exec_id)
