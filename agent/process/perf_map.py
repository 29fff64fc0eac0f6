# SPDX-License-Identifier: Apache-2.0
"""Reads the names a JIT compiler left in /tmp/perf-PID.map: lines "START SIZE NAME", numbers in hex.

Layout: Linux, tools/perf/Documentation/jit-interface.txt.

The file is untrusted and alive: its last line may be half written, it grows, it is rewritten. Work is done on whole arrays, since a map may
have a million lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from agent.records.process import PerfMap

Ints = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]

MAX_NAME_BYTES = 4096
_PIECE_BYTES = 1 << 18
_NOT_HEX = 255
_HEX = np.full(256, _NOT_HEX, dtype=np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16)
_HEX.flags.writeable = False
_MAX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class PerfMapParse:
    """What was found in one perf map."""

    perf_map: PerfMap
    malformed: int
    """Lines that are no lines of a perf map, or whose range is empty or leaves the address space."""
    is_truncated: bool
    """There were more lines than allowed."""


class NamesInBlob(Sequence[bytes]):
    """Names as places in the text they were read from: a million of them are no million objects."""

    def __init__(self, blob: bytes, starts: npt.NDArray[np.uint32], ends: npt.NDArray[np.uint32]) -> None:
        self._blob = blob
        self._starts = starts
        self._ends = ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self._blob[int(self._starts[index]) : int(self._ends[index])]

    @property
    def size_bytes(self) -> int:
        """Memory taken."""
        return len(self._blob) + self._starts.nbytes + self._ends.nbytes


def parse_perf_map(raw: bytes, lines_max: int) -> PerfMapParse:
    """Parse the first `lines_max` lines of `raw` (under 4 GiB); what stands behind the last newline is not read.

    Whole lines are taken a piece at a time, so that no content makes arrays longer than a piece, but those of lines that are good.
    """
    pieces: list[_Lines] = []
    at = lines = 0
    while lines < lines_max and at < len(raw):
        end = raw.rfind(b"\n", at, at + _PIECE_BYTES) + 1
        if end:
            pieces.append(_good_lines(raw, at, end, lines_max - lines))
            lines += pieces[-1].count
            at = pieces[-1].end
        else:  # A line longer than a piece is none.
            end = raw.find(b"\n", at + _PIECE_BYTES) + 1
            lines += bool(end)
            at = end or len(raw)
    good = _joined(pieces)
    ranges = _without_overlaps(good.starts, good.ends)
    names = _names(raw, good.name_starts[ranges.lines], good.name_ends[ranges.lines])
    is_truncated = lines == lines_max and raw.find(b"\n", at) >= 0
    return PerfMapParse(PerfMap(ranges.starts, ranges.ends, names), lines - len(good.starts), is_truncated)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Good lines of a piece: their ranges, and where their names stand in the whole text."""

    starts: Addresses
    ends: Addresses
    name_starts: Ints
    name_ends: Ints
    count: int
    """Good or not."""
    end: int
    """Where the next line begins."""


def _good_lines(raw: bytes, at: int, end: int, lines_max: int) -> _Lines:
    """Of the first `lines_max` lines of raw[at:end], which ends with a newline."""
    text = np.frombuffer(raw, dtype=np.uint8, offset=at, count=end - at)
    line_ends = np.flatnonzero(text == ord("\n"))[:lines_max]
    line_starts = np.concatenate(([0], line_ends[:-1] + 1))
    blanks = np.append(np.flatnonzero(text == ord(" ")), [len(text), len(text)])
    first = np.searchsorted(blanks, line_starts)
    start_ends, size_ends = blanks[first], blanks[np.minimum(first + 1, len(blanks) - 1)]
    starts, is_start = _hex_numbers(text, line_starts, start_ends)
    sizes, is_size = _hex_numbers(text, start_ends + 1, size_ends)
    ends = starts + sizes
    good = np.flatnonzero(is_start & is_size & (size_ends + 1 < line_ends) & (ends > starts))
    name_starts = size_ends[good] + 1
    name_ends = np.minimum(line_ends[good], name_starts + MAX_NAME_BYTES)
    return _Lines(starts[good], ends[good], name_starts + at, name_ends + at, len(line_ends), at + int(line_ends[-1]) + 1)


def _joined(pieces: Sequence[_Lines]) -> _Lines:
    numbers, places = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    return _Lines(
        starts=np.concatenate([numbers, *(piece.starts for piece in pieces)]),
        ends=np.concatenate([numbers, *(piece.ends for piece in pieces)]),
        name_starts=np.concatenate([places, *(piece.name_starts for piece in pieces)]),
        name_ends=np.concatenate([places, *(piece.name_ends for piece in pieces)]),
        count=sum(piece.count for piece in pieces),
        end=pieces[-1].end if pieces else 0,
    )


def _names(raw: bytes, starts: Ints, ends: Ints) -> NamesInBlob:
    """Keeps `raw`, or a copy of the names alone when they are less than half of it."""
    sizes = ends - starts
    if 2 * int(sizes.sum()) < len(raw):
        raw = b"".join(raw[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
        ends = np.cumsum(sizes)
        starts = ends - sizes
    return NamesInBlob(raw, starts.astype(np.uint32), ends.astype(np.uint32))


def size_bytes(perf_map: PerfMap) -> int:
    """Memory a parsed map takes."""
    names = perf_map.names
    return perf_map.starts.nbytes + perf_map.ends.nbytes + (names.size_bytes if isinstance(names, NamesInBlob) else 0)


@dataclass(frozen=True, slots=True)
class _Ranges:
    starts: Addresses
    ends: Addresses
    lines: Ints
    """Which line each range comes from."""


def _hex_numbers(text: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> tuple[Addresses, npt.NDArray[np.bool_]]:
    """Numbers at text[starts:ends], with or without 0x, and whether each is one of 1 to 16 digits."""
    last = max(len(text) - 1, 0)
    if not len(text) or not len(starts):
        return np.zeros(len(starts), np.uint64), np.zeros(len(starts), np.bool_)
    has_prefix = (text[np.minimum(starts, last)] == ord("0")) & (text[np.minimum(starts + 1, last)] == ord("x"))
    starts = starts + 2 * has_prefix
    counts = ends - starts
    is_number = (counts >= 1) & (counts <= _MAX_DIGITS)
    values = np.zeros(len(starts), np.uint64)
    for place in range(int(min(counts[is_number].max(initial=0), _MAX_DIGITS))):
        is_in = is_number & (place < counts)
        digits = _HEX[text[np.clip(ends - 1 - place, 0, last)]]
        is_number &= ~is_in | (digits != _NOT_HEX)
        values |= np.where(is_in & is_number, digits, 0).astype(np.uint64) << np.uint64(4 * place)
    return values, is_number


def _without_overlaps(starts: Addresses, ends: Addresses) -> _Ranges:
    """Sort ranges by start; where they overlap the one of the later line wins, and the earlier keeps what is left of it."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if not len(starts) or bool(np.all(ends[:-1] <= starts[1:])):
        return _Ranges(starts, ends, order)
    edges = np.unique(np.concatenate((starts, ends)))
    winners = _latest(np.searchsorted(edges, starts), np.searchsorted(edges, ends), order, len(edges) - 1)
    is_first = np.diff(winners, prepend=-2) != 0
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(winners))
    is_named = winners[firsts] >= 0
    return _Ranges(edges[firsts[is_named]], edges[lasts[is_named]], winners[firsts[is_named]])


def _latest(lefts: Ints, rights: Ints, lines: Ints, count: int) -> Ints:
    """For each of `count` cells the largest of `lines` whose [left, right) covers it, else -1.

    A range of length n is covered by two, maybe overlapping, blocks of the largest power of two within n. Blocks are entered at their
    size and handed down, halving: O(n log n) whatever the overlaps are, where painting ranges one by one is quadratic.
    """
    levels = np.frexp((rights - lefts).astype(np.float64))[1] - 1
    cells = np.full(count, -1, dtype=np.int64)
    for level in range(int(levels.max()), -1, -1):
        block = 1 << level
        is_here = levels == level
        np.maximum.at(cells, lefts[is_here], lines[is_here])
        np.maximum.at(cells, rights[is_here] - block, lines[is_here])
        if level:
            half = block >> 1
            handed = cells[: max(count - half, 0)].copy()
            np.maximum(cells[half:], handed, out=cells[half:])
    return cells
