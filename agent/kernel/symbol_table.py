# SPDX-License-Identifier: Apache-2.0
"""Names of the kernel's symbols by address, in a file that is mapped: what nobody looks up takes no memory of this process.

    HEADER | start of each symbol, u64, ascending | where its name ends, u32, DATA_BIT when it is data | tracing, u64 pairs | names

A name that is empty stands where a module ends: what lies behind it belongs to nobody that is known.
"""

import itertools
import mmap
import os
import re
import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
_Symbol = tuple[int, bytes, bytes, bytes]
"""Address, type, name, owner."""

MAGIC = b"EWSYMS01"
HEADER = struct.Struct("<8sQQQQQQ")
"""Magic, symbols, tracing ranges, bytes of names, start and end of data, start of what modules own."""
DATA_BIT = 1 << 31
_LINE = re.compile(rb"^([0-9a-f]{1,16}) (.) ([^\t\n]+)(?:\t\[([^\]\n]+)\])?$", re.MULTILINE)
_TRACING = b"__traceiter_"
_DATA_TYPES = b"bBdDgGrRsSvV"
_PROGRAMS = b"bpf"
"""Owner of BPF programs, which come and go all the time and ask for no locks themselves."""
_PAGE_BYTES = 4096
_NOWHERE = (1 << 64) - 1
_FARTHEST_BYTES = 1 << 20
"""No function is that long: an address farther behind a symbol is in none."""


class SymbolTable:
    """A mapped file. Closed when nobody holds it any more."""

    def __init__(self, descriptor: int) -> None:
        """Raises ValueError when the file is no table, OSError when it cannot be mapped. The descriptor may be closed afterwards."""
        size = os.fstat(descriptor).st_size
        if size < HEADER.size:
            raise ValueError(f"a table of {size} bytes")
        self._memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ)
        magic, count, ranges, name_bytes, self.data_start, self.data_end, self._foreign_start = HEADER.unpack_from(self._memory)
        if magic != MAGIC or HEADER.size + 12 * count + 16 * ranges + name_bytes != size:
            raise ValueError("not a table of symbols, or a part of one")
        ends_at, tracing_at = HEADER.size + 8 * count, HEADER.size + 12 * count
        self._starts = np.frombuffer(self._memory, "<u8", count, HEADER.size)
        self._ends = np.frombuffer(self._memory, "<u4", count, ends_at)
        self.tracing: U64 = np.frombuffer(self._memory, "<u8", 2 * ranges, tracing_at).reshape(-1, 2).copy()
        """Start and end of each function __traceiter_*, ascending: between a tracepoint and its programs, when it has more than one."""
        self._names_at = tracing_at + 16 * ranges

    def names(self, addresses: U64, *, is_image_only: bool = False) -> list[bytes]:
        """The symbol that each address lies in, with +0x... behind for data that it does not begin; empty for unknown.

        With `is_image_only` nothing is said of modules: they have changed since.
        """
        if not len(self._starts):
            return [b""] * len(addresses)
        at = np.searchsorted(self._starts, addresses, side="right") - 1
        behind = addresses - self._starts[np.maximum(at, 0)]
        is_there = (at >= 0) & (behind < _FARTHEST_BYTES)
        if is_image_only:
            is_there &= addresses < np.uint64(self._foreign_start)
        names = [b""] * len(addresses)
        found = np.flatnonzero(is_there)
        for row, place, distance in zip(found.tolist(), at[found].tolist(), behind[found].tolist(), strict=True):
            names[row] = self._name(place, distance)
        self._memory.madvise(mmap.MADV_DONTNEED)  # The kernel maps what lies around each page too: in the end all of it.
        return names

    def _name(self, place: int, distance: int) -> bytes:
        first = int(self._ends[place - 1]) & ~DATA_BIT if place else 0
        end = int(self._ends[place])
        name = self._memory[self._names_at + first : self._names_at + (end & ~DATA_BIT)]
        return name + b"+0x%x" % distance if end & DATA_BIT and distance and name else name


def table_from_kallsyms(raw: bytes) -> bytes:
    """The file, of the text of kallsyms; empty text makes an empty table."""
    found = sorted((int(addr, 16), kind, name, owner) for addr, kind, name, owner in _LINE.findall(raw))
    found = [symbol for symbol in found if symbol[0]]
    tracing = list(_tracing(found))
    data = [address for address, kind, _, _ in found if kind in _DATA_TYPES]
    foreign_start = min((address for address, _, _, owner in found if owner), default=_NOWHERE)
    kept = list(_named(found))
    ends = np.cumsum([len(name) for _, _, name in kept], dtype=np.int64)
    is_data = np.array([kind in _DATA_TYPES for _, kind, _ in kept], np.bool_)
    names = b"".join(name for _, _, name in kept)
    header = HEADER.pack(MAGIC, len(kept), len(tracing), len(names), min(data, default=0), max(data, default=-1) + 1, foreign_start)
    starts = np.array([start for start, _, _ in kept], "<u8").tobytes()
    return b"".join((header, starts, (ends | is_data * DATA_BIT).astype("<u4").tobytes(), np.array(tracing, "<u8").tobytes(), names))


def _named(found: Sequence[_Symbol]) -> Iterator[tuple[int, bytes, bytes]]:
    """Start, type and name, ascending: of aliases always the same one, and nothing where a run of symbols of one module ends."""
    before = 0
    for (start, kind, name, owner), (after, _, _, next_owner) in itertools.pairwise((*found, (_NOWHERE, b"", b"", b""))):
        if start != before and owner != _PROGRAMS:
            yield start, kind, name
        before = start
        end = (start // _PAGE_BYTES + 1) * _PAGE_BYTES
        if owner and owner != next_owner and end < after:
            yield end, b"t", b""


def _tracing(found: Sequence[_Symbol]) -> Iterator[tuple[int, int]]:
    for (start, _, name, _), (end, _, _, _) in itertools.pairwise(found):
        if name.startswith(_TRACING) and start < end:
            yield start, end
