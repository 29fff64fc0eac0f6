# SPDX-License-Identifier: Apache-2.0
"""Chooses, for every address of code, at most one symbol: the rules of names, on whole arrays.

In: symbols as columns, as several symbol tables have them, and the ranges of executable sections. Out: ranges that do not
overlap, sorted by start, each with its name. An address in no range has no name: a sized symbol never stretches over a gap.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MAX_SYMBOLS = 8_000_000
MAX_NAME_BYTES = 16 << 10
"""Longer raw names are cut; the longest seen in the wild (Boost) have about 10 KiB."""
MAX_BLOB_BYTES = 256 << 20

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

RANK_GLOBAL, RANK_WEAK, RANK_LOCAL = 0, 1, 2
"""Order of choice between aliases: global, then weak, then local; then the shortest name, then the first by bytes."""

FLAG_INEXACT = 1
"""The symbol had no size: its end is where the next one starts."""


class TooMany(Exception):
    """More symbols or bytes of names than a table may have."""


@dataclass(frozen=True, slots=True)
class RawSymbols:
    """Symbols as columns, in any order; only those that may name code."""

    starts: U64
    sizes: U64
    ranks: U8
    name_starts: I64
    """Where the name starts in `strings`; it ends at the next zero byte."""
    strings: U8
    """String tables one after another; the last byte is zero."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Executable sections (or segments), sorted by start, half open, not overlapping."""

    starts: U64
    ends: U64


@dataclass(frozen=True, slots=True)
class Symbols:
    """Ranges of code with their names, sorted by start, not overlapping."""

    starts: U64
    ends: U64
    flags: U8
    name_bounds: U64
    """Name i is blob[name_bounds[i]:name_bounds[i + 1]]."""
    blob: U8

    def __len__(self) -> int:
        return int(self.starts.size)


def join(tables: list[RawSymbols]) -> RawSymbols:
    """One set of columns out of several (.symtab and .dynsym, a binary and its debug file)."""
    shifts = np.cumsum([0, *[table.strings.size for table in tables]])
    return RawSymbols(
        np.concatenate([np.zeros(0, np.uint64), *[t.starts for t in tables]]),
        np.concatenate([np.zeros(0, np.uint64), *[t.sizes for t in tables]]),
        np.concatenate([np.zeros(0, np.uint8), *[t.ranks for t in tables]]),
        np.concatenate([np.zeros(0, np.int64), *[t.name_starts + shift for t, shift in zip(tables, shifts, strict=False)]]),
        np.concatenate([np.zeros(0, np.uint8), *[t.strings for t in tables]]),
    )


def choose(raw: RawSymbols, code: Ranges) -> Symbols:
    """Apply the rules. Raises TooMany."""
    if raw.starts.size > MAX_SYMBOLS:
        raise TooMany(f"{raw.starts.size} symbols, at most {MAX_SYMBOLS} are read")
    lengths = _name_lengths(raw)
    section = np.searchsorted(code.starts, raw.starts, "right") - 1
    keep = (section >= 0) & (lengths > 0) & ~_is_label(raw, lengths)
    if code.starts.size:
        keep &= raw.starts < code.ends[section]
    rows = np.flatnonzero(keep)
    rooms = code.ends[section[rows]] - raw.starts[rows] if rows.size else np.zeros(0, np.uint64)
    sizes = np.minimum(raw.sizes[rows], rooms)
    is_sized = sizes > 0
    ends = raw.starts[rows] + sizes
    sized = _best_of_aliases(raw, lengths, rows[is_sized], ends[is_sized])
    starts, stops, names = _flatten(raw.starts[sized[0]], sized[1], sized[0])
    bare = _fill_with_bare(raw, lengths, (rows[~is_sized], raw.starts[rows[~is_sized]] + rooms[~is_sized]), (starts, stops))
    return _symbols(raw, lengths, (starts, stops, names), bare)


def bounds_of(lengths: npt.NDArray[np.integer]) -> U64:
    """Where pieces of these lengths start and end when they lie one after another: n + 1 numbers."""
    bounds = np.zeros(lengths.size + 1, np.uint64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def _name_lengths(raw: RawSymbols) -> I64:
    if not raw.starts.size:
        return np.zeros(0, np.int64)
    zeros = np.flatnonzero(raw.strings == 0)
    inside = (raw.name_starts >= 0) & (raw.name_starts < raw.strings.size)
    places = np.where(inside, raw.name_starts, 0)
    ends = zeros[np.minimum(np.searchsorted(zeros, places), zeros.size - 1)] if zeros.size else places
    return np.where(inside, np.clip(ends - places, 0, MAX_NAME_BYTES), 0)


def _is_label(raw: RawSymbols, lengths: I64) -> npt.NDArray[np.bool_]:
    """Mapping symbols of ARM and RISC-V ($x, $d, $a.12) and local labels (.L12) are no functions."""
    if not raw.starts.size:
        return np.zeros(0, np.bool_)
    last = raw.strings.size - 1
    places = np.where(lengths > 0, raw.name_starts, 0)
    first, second, third = (raw.strings[np.minimum(places + i, last)] for i in range(3))
    is_mapping = (first == ord("$")) & np.isin(second, np.frombuffer(b"axdt", np.uint8)) & ((third == 0) | (third == ord(".")))
    is_local: npt.NDArray[np.bool_] = (first == ord(".")) & (second == ord("L"))
    return np.asarray(is_mapping | is_local, np.bool_)


def _best_of_aliases(raw: RawSymbols, lengths: I64, rows: I64, ends: U64) -> tuple[I64, U64]:
    """One row per (start, end), sorted by start, then end."""
    order = np.lexsort((lengths[rows], raw.ranks[rows], ends, raw.starts[rows]))
    rows, ends = rows[order], ends[order]
    if not rows.size:
        return rows, ends
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = (raw.starts[rows[1:]] != raw.starts[rows[:-1]]) | (ends[1:] != ends[:-1])
    heads = np.flatnonzero(is_first)
    head_of = heads[np.cumsum(is_first) - 1]
    head_rows = rows[head_of]
    is_tied = (raw.ranks[rows] == raw.ranks[head_rows]) & (lengths[rows] == lengths[head_rows]) & ~is_first
    chosen = rows.copy()
    for place in np.flatnonzero(is_tied).tolist():
        head = int(head_of[place])
        if _name(raw, lengths, int(rows[place])) < _name(raw, lengths, int(chosen[head])):
            chosen[head] = rows[place]
    return chosen[heads], ends[heads]


def _name(raw: RawSymbols, lengths: I64, row: int) -> bytes:
    start = int(raw.name_starts[row])
    return raw.strings[start : start + int(lengths[row])].tobytes()


def _flatten(starts: U64, ends: U64, names: I64) -> tuple[U64, U64, I64]:
    """Make ranges disjoint: where several cover an address, the one that starts last wins, then the shortest."""
    if not starts.size:
        return starts, ends, names
    reach = np.maximum.accumulate(ends)
    if not np.any(starts[1:] < reach[:-1]):
        return starts, ends, names
    out: list[tuple[int, int, int]] = []
    is_head = np.concatenate([[True], starts[1:] >= reach[:-1]])
    bounds = [*np.flatnonzero(is_head).tolist(), starts.size]
    for low, high in itertools.pairwise(bounds):
        if high - low == 1:
            out.append((int(starts[low]), int(ends[low]), int(names[low])))
        else:
            out.extend(_sweep(starts[low:high].tolist(), ends[low:high].tolist(), names[low:high].tolist()))
    columns = list(zip(*out, strict=True))
    return np.array(columns[0], np.uint64), np.array(columns[1], np.uint64), np.array(columns[2], np.int64)


def _sweep(starts: list[int], ends: list[int], names: list[int]) -> list[tuple[int, int, int]]:
    points = sorted({*starts, *ends})
    active: list[tuple[int, int, int]] = []
    out: list[tuple[int, int, int]] = []
    nearest = 0
    for low, high in itertools.pairwise(points):
        while nearest < len(starts) and starts[nearest] <= low:
            heapq.heappush(active, (-starts[nearest], ends[nearest], nearest))
            nearest += 1
        while active and active[0][1] <= low:
            heapq.heappop(active)
        if not active:
            continue
        name = names[active[0][2]]
        if out and out[-1][2] == name and out[-1][1] == low:
            out[-1] = (out[-1][0], high, name)
        else:
            out.append((low, high, name))
    return out


def _fill_with_bare(raw: RawSymbols, lengths: I64, bare: tuple[I64, U64], sized: tuple[U64, U64]) -> tuple[U64, U64, I64]:
    """Symbols without a size: from their start to the next symbol of any kind or the end of the section, where no sized one is."""
    rows, room_ends = bare
    if not rows.size:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64), rows
    if sized[0].size:
        before = np.searchsorted(sized[0], raw.starts[rows], "right") - 1
        is_free = (before < 0) | (raw.starts[rows] >= sized[1][np.maximum(before, 0)])
        rows, room_ends = rows[is_free], room_ends[is_free]
    rows, ends = _best_of_aliases(raw, lengths, rows, room_ends)
    starts = raw.starts[rows]
    stops = np.union1d(starts, sized[0])
    following = np.searchsorted(stops, starts, "right")
    has_next = following < stops.size
    if stops.size:
        ends = np.where(has_next, np.minimum(ends, stops[np.minimum(following, stops.size - 1)]), ends)
    return starts, ends, rows


def _symbols(raw: RawSymbols, lengths: I64, sized: tuple[U64, U64, I64], bare: tuple[U64, U64, I64]) -> Symbols:
    starts = np.concatenate([sized[0], bare[0]])
    order = np.argsort(starts, kind="stable")
    rows = np.concatenate([sized[2], bare[2]])[order]
    flags = np.concatenate([np.zeros(sized[0].size, np.uint8), np.full(bare[0].size, FLAG_INEXACT, np.uint8)])[order]
    bounds = bounds_of(lengths[rows])
    total = int(bounds[-1])
    if total > MAX_BLOB_BYTES:
        raise TooMany(f"{total} bytes of names, at most {MAX_BLOB_BYTES} are read")
    shifts = raw.name_starts[rows] - bounds[:-1].astype(np.int64)
    blob = raw.strings[np.repeat(shifts, lengths[rows]) + np.arange(total)]
    return Symbols(starts[order], np.concatenate([sized[1], bare[1]])[order], flags, bounds, blob)
