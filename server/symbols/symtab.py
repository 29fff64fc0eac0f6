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
FLAG_UNNAMED = 2
"""A function that has bounds in the unwind tables and no name anywhere."""


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
    alias_symbols: npt.NDArray[np.uint32]
    """The symbol that each alias is another name of, ascending."""
    alias_bounds: U64
    alias_blob: U8

    def __len__(self) -> int:
        return int(self.starts.size)

    def name(self, row: int) -> bytes:
        """The name of one symbol."""
        return self.blob[int(self.name_bounds[row]) : int(self.name_bounds[row + 1])].tobytes()


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


def choose(raw: RawSymbols, code: Ranges, functions: Ranges | None = None) -> Symbols:
    """Apply the rules. `functions` are bounds without names, as unwind tables have them. Raises TooMany."""
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
    names = _Names(raw, lengths)
    sized = names.best(rows[is_sized], ends[is_sized])
    pieces = _flatten(raw.starts[sized[0]], sized[1], sized[0])
    free = _free(pieces, raw.starts[rows[~is_sized]])
    bare_rows, room_ends = rows[~is_sized][free], (raw.starts[rows] + rooms)[~is_sized][free]
    known = np.zeros(0, np.uint64) if functions is None else functions.starts
    bare = _up_to_the_next(names.best(bare_rows, room_ends), raw.starts, np.concatenate([pieces[0], known]))
    unnamed = _unnamed(functions, code, (np.concatenate([pieces[0], bare[0]]), np.concatenate([pieces[1], bare[1]])))
    return _symbols(names, pieces, bare, unnamed)


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


class _Names:
    """Names of symbols, compared by rank, length and bytes; remembers which symbols are other names of which."""

    def __init__(self, raw: RawSymbols, lengths: I64) -> None:
        self.raw = raw
        self.lengths = lengths
        self._strings = raw.strings.tobytes()
        self._aliases: list[tuple[I64, I64]] = []

    def texts(self, rows: I64) -> list[bytes]:
        """The names of some symbols."""
        starts = self.raw.name_starts[rows]
        strings = self._strings  # Slices of it: an index for each byte would be eight times as large as all names together.
        return [strings[start:end] for start, end in zip(starts.tolist(), (starts + self.lengths[rows]).tolist(), strict=True)]

    def _differ(self, rows: I64, others: I64) -> npt.NDArray[np.bool_]:
        """Whether two symbols each have different names; only bytes of names of one length are looked at."""
        differ: npt.NDArray[np.bool_] = self.lengths[rows] != self.lengths[others]
        alike = np.flatnonzero(~differ)
        if alike.size:
            same = self.raw.name_starts[rows[alike]] == self.raw.name_starts[others[alike]]
            alike = alike[~same]
            pairs = zip(self.texts(rows[alike]), self.texts(others[alike]), strict=True)
            differ[alike] = np.fromiter((mine != other for mine, other in pairs), np.bool_, alike.size)
        return differ

    def best(self, rows: I64, ends: U64) -> tuple[I64, U64]:
        """One row per (start, end), sorted by start, then end."""
        raw = self.raw
        order = np.lexsort((self.lengths[rows], raw.ranks[rows], ends, raw.starts[rows]))
        rows, ends = rows[order], ends[order]
        if not rows.size:
            return rows, ends
        is_first = np.ones(rows.size, np.bool_)
        is_first[1:] = (raw.starts[rows[1:]] != raw.starts[rows[:-1]]) | (ends[1:] != ends[:-1])
        heads = np.flatnonzero(is_first)
        head_of = heads[np.cumsum(is_first) - 1]
        chosen = rows.copy()
        others = np.flatnonzero(~is_first)
        differs = np.zeros(rows.size, np.bool_)
        differs[others] = self._differ(rows[others], rows[head_of[others]])
        is_tied = differs & (raw.ranks[rows] == raw.ranks[rows[head_of]]) & (self.lengths[rows] == self.lengths[rows[head_of]])
        tied = np.flatnonzero(is_tied)
        lowest = dict(zip(head_of[tied].tolist(), self.texts(rows[head_of[tied]]), strict=True))
        for head, row, name in zip(head_of[tied].tolist(), rows[tied].tolist(), self.texts(rows[tied]), strict=True):
            if name < lowest[head]:
                chosen[head], lowest[head] = row, name
        of = chosen[head_of]
        some = np.flatnonzero(of != rows)
        some = some[self._differ(rows[some], of[some])]
        self._aliases.append((of[some], rows[some]))
        return chosen[heads], ends[heads]

    def aliases(self, symbols: I64) -> tuple[I64, list[bytes]]:
        """Symbols with other names and those names, ascending; `symbols` are the rows that were chosen, in order of address."""
        of, rows = (np.concatenate([pair[side] for pair in self._aliases] or [np.zeros(0, np.int64)]) for side in (0, 1))
        order = np.argsort(symbols, kind="stable")
        places = np.searchsorted(symbols[order], of)
        is_there = places < symbols.size
        is_there[is_there] = symbols[order[places[is_there]]] == of[is_there]
        if int(self.lengths[rows[is_there]].sum()) > MAX_BLOB_BYTES:
            raise TooMany(f"more than {MAX_BLOB_BYTES} bytes of other names")
        numbers = order[places[is_there]]
        found = {(number, len(name), name) for number, name in zip(numbers.tolist(), self.texts(rows[is_there]), strict=True)}
        ranked = sorted(found)
        return np.array([number for number, _, _ in ranked], np.int64), [name for _, _, name in ranked]


def _flatten(starts: U64, ends: U64, names: I64) -> tuple[U64, U64, I64]:
    """Make ranges disjoint: where several cover an address, the one that starts last wins, then the shortest."""
    if not starts.size:
        return starts, ends, names
    reach = np.maximum.accumulate(ends)
    if not np.any(starts[1:] < reach[:-1]):
        return starts, ends, names
    is_head = np.concatenate([[True], starts[1:] >= reach[:-1]])
    heads = np.flatnonzero(is_head)
    sizes = np.diff([*heads.tolist(), starts.size])
    alone = heads[sizes == 1]
    out: list[tuple[int, int, int]] = []
    for low, size in zip(heads[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        some = slice(low, low + size)
        out.extend(_sweep(starts[some].tolist(), ends[some].tolist(), names[some].tolist()))
    columns = list(zip(*out, strict=True))
    flat = (
        np.concatenate([starts[alone], np.array(columns[0], np.uint64)]),
        np.concatenate([ends[alone], np.array(columns[1], np.uint64)]),
        np.concatenate([names[alone], np.array(columns[2], np.int64)]),
    )
    order = np.argsort(flat[0])
    return flat[0][order], flat[1][order], flat[2][order]


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


def _free(pieces: tuple[U64, U64, I64], starts: U64) -> npt.NDArray[np.bool_]:
    """Which of these addresses lie in no piece; pieces are sorted."""
    if not pieces[0].size:
        return np.ones(starts.size, np.bool_)
    before = np.searchsorted(pieces[0], starts, "right") - 1
    return (before < 0) | (starts >= pieces[1][np.maximum(before, 0)])


def _up_to_the_next(bare: tuple[I64, U64], all_starts: U64, stops: U64) -> tuple[U64, U64, I64]:
    """Symbols without a size: from their start to the next symbol of any kind, the next function or the end of the section."""
    rows, ends = bare
    starts = all_starts[rows]
    if not rows.size:
        return starts, ends, rows
    stops = np.sort(np.concatenate([starts, stops]), kind="stable")
    following = np.searchsorted(stops, starts, "right")
    nearest = stops[np.minimum(following, stops.size - 1)]
    return starts, np.where(following < stops.size, np.minimum(ends, nearest), ends), rows


def _unnamed(functions: Ranges | None, code: Ranges, named: tuple[U64, U64]) -> tuple[U64, U64]:
    """Functions that no symbol names: from their start to their end or to the next symbol."""
    none = np.zeros(0, np.uint64)
    if functions is None or not functions.starts.size or not code.starts.size:
        return none, none
    order = np.argsort(named[0])
    starts, ends = named[0][order], named[1][order]
    section = np.searchsorted(code.starts, functions.starts, "right") - 1
    wanted = (section >= 0) & _free((starts, ends, order), functions.starts)
    lows = functions.starts[wanted]
    highs = np.minimum(functions.ends[wanted], code.ends[section[wanted]])
    if starts.size:
        following = np.searchsorted(starts, lows)
        nearest = starts[np.minimum(following, starts.size - 1)]
        highs = np.where(following < starts.size, np.minimum(highs, nearest), highs)
    keep = highs > lows
    return lows[keep], highs[keep]


def _symbols(names: _Names, sized: tuple[U64, U64, I64], bare: tuple[U64, U64, I64], unnamed: tuple[U64, U64]) -> Symbols:
    counts = [sized[0].size, bare[0].size, unnamed[0].size]
    starts = np.concatenate([sized[0], bare[0], unnamed[0]])
    order = np.argsort(starts, kind="stable")
    rows = np.concatenate([sized[2], bare[2], np.full(counts[2], -1)])[order]
    flags = np.repeat(np.array([0, FLAG_INEXACT, FLAG_UNNAMED], np.uint8), counts)[order]
    has_name = rows >= 0
    lengths = np.zeros(rows.size, np.int64)
    lengths[has_name] = names.lengths[rows[has_name]]
    bounds = bounds_of(lengths)
    total = int(bounds[-1])
    if total > MAX_BLOB_BYTES:
        raise TooMany(f"{total} bytes of names, at most {MAX_BLOB_BYTES} are read")
    alias_symbols, aliases = names.aliases(rows)
    return Symbols(
        starts=starts[order],
        ends=np.concatenate([sized[1], bare[1], unnamed[1]])[order],
        flags=flags,
        name_bounds=bounds,
        blob=np.frombuffer(b"".join(names.texts(rows[has_name])), np.uint8),
        alias_symbols=alias_symbols.astype(np.uint32),
        alias_bounds=bounds_of(np.array([len(name) for name in aliases], np.int64)),
        alias_blob=np.frombuffer(b"".join(aliases), np.uint8),
    )
