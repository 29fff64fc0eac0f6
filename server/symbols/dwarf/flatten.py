# SPDX-License-Identifier: Apache-2.0
"""From functions, inlined calls and line rows to places: every address gets its innermost node, file and line, on whole arrays.

Calls are painted from the outside in: each level of inlining over the one above it, and only where its parent lies.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.calls import Calls
from server.symbols.dwarf.line_program import END
from server.symbols.dwarf.lines import Rows
from server.symbols.dwarf.naming import plain_name
from server.symbols.inlines import NO_NODE, Inlines

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
MAX_TEXT_BYTES = 16 << 10


_TWIN, _FIRST, _CHOSEN = range(3)
"""Which of several functions at one place is painted last and so stands for all: the one whose name the symbol rules chose."""


def flatten(calls: Calls, rows: Rows, names: dict[int, bytes], folded: Mapping[int, bytes]) -> Inlines | None:
    """Everything as columns; None when there is neither code nor a line. `names` is by offset of the naming entry, `folded` are
    the names of symbols by start where several functions share their code.
    """
    row_addresses, row_places = _sorted_rows(rows)
    points = _ascending(np.concatenate([row_addresses, calls.ranges.starts, calls.ranges.ends]))
    if points.size < 2:
        return None
    turns = np.full(calls.parents.size, _FIRST, np.uint8)
    for start, node, _ in calls.twins:
        turns[node] = _CHOSEN if plain_name(names.get(int(calls.names[node]), b"")) == plain_name(folded[start]) else _TWIN
    nodes = _innermost(points, calls, turns)
    at = np.searchsorted(row_addresses, points, "right") - 1
    lines = np.where(at >= 0, row_places[np.maximum(at, 0)] if row_places.size else np.uint64(END), np.uint64(END))
    files = np.where(lines == END, 0, lines >> np.uint64(32)).astype(np.int64)
    lines = np.where(lines == END, 0, lines & np.uint64(0xFFFF_FFFF)).astype(np.int64)
    files[lines == 0] = 0
    changes = np.ones(points.size, np.bool_)
    changes[1:] = (nodes[1:] != nodes[:-1]) | (files[1:] != files[:-1]) | (lines[1:] != lines[:-1])
    return _columns((points[changes], nodes[changes], files[changes], lines[changes]), calls, rows, names)


def _sorted_rows(rows: Rows) -> tuple[U64, U64]:
    """Rows by address; sequences that lie over others (folded by the linker) are left out. The last of several at one address stays."""
    if not any(piece.size for piece in rows.addresses):
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    addresses, places = np.concatenate(rows.addresses), np.concatenate(rows.places)
    behinds = np.flatnonzero(places == END) + 1
    firsts = np.concatenate([[0], behinds[:-1]])
    by_start = np.argsort(addresses[firsts], kind="stable")
    alone, reach = [], 0
    for sequence, start, end in zip(
        by_start.tolist(), addresses[firsts[by_start]].tolist(), addresses[behinds[by_start] - 1].tolist(), strict=True
    ):
        if start >= reach:
            alone.append(sequence)
            reach = end
    order = _spans(firsts[alone], behinds[alone])
    addresses, places = np.maximum.accumulate(addresses[order]), places[order]
    is_last = np.ones(addresses.size, np.bool_)
    is_last[:-1] = addresses[1:] != addresses[:-1]
    return addresses[is_last], places[is_last]


def _ascending(numbers: U64) -> U64:
    """Each number once. They come in long runs that ascend, which a merging sort is made for."""
    ordered = np.sort(numbers, kind="stable")
    is_first = np.ones(ordered.size, np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def _spans(firsts: I64, behinds: I64) -> I64:
    """All numbers of firsts[i]..behinds[i], one span after another."""
    lengths = behinds - firsts
    shifts = firsts - np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))


def _innermost(points: U64, calls: Calls, turns: npt.NDArray[np.uint8]) -> I64:
    """The innermost node from each point on, one more than its number in `calls`; NO_NODE where there is none."""
    nodes, depths, parents = calls.ranges.entries, calls.depths, calls.parents
    firsts, behinds = np.searchsorted(points, calls.ranges.starts), np.searchsorted(points, calls.ranges.ends)
    painted = np.full(points.size, NO_NODE, np.int64)
    by_depth = np.lexsort((turns[nodes], depths[nodes]))
    bounds = np.searchsorted(depths[nodes][by_depth], np.arange(int(depths.max()) + 2)) if nodes.size else np.zeros(1, np.int64)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        some = by_depth[low:high]
        places = _spans(firsts[some], behinds[some])
        node = np.repeat(nodes[some], behinds[some] - firsts[some])
        is_inside = (parents[node] < 0) | (painted[places] == parents[node] + 1)
        painted[places[is_inside]] = node[is_inside] + 1
    return painted


def _columns(places: tuple[U64, I64, I64, I64], calls: Calls, rows: Rows, names: dict[int, bytes]) -> Inlines:
    starts, place_nodes, place_files, place_lines = places
    parents = np.concatenate([[0], calls.parents + 1])
    is_used = _with_ancestors(place_nodes, parents)
    renumbered = np.cumsum(is_used) - 1
    used = np.flatnonzero(is_used)[1:] - 1
    name_places, which = np.unique(calls.names[used], return_inverse=True)
    numbers: dict[bytes, int] = {b"": 0}
    by_place = [numbers.setdefault(names.get(place, b"")[:MAX_TEXT_BYTES], len(numbers)) for place in name_places.tolist()]
    file_numbers = np.array([numbers.setdefault(path[:MAX_TEXT_BYTES], len(numbers)) for path in rows.paths], np.int64)
    bounds, texts = pool(list(numbers))
    base = int(starts[0])
    return Inlines(
        base=base,
        starts=narrow(starts - np.uint64(base)),
        place_nodes=narrow(renumbered[place_nodes]),
        place_files=narrow(file_numbers[place_files]),
        place_lines=narrow(place_lines),
        node_parents=narrow(renumbered[parents[np.concatenate([[0], used + 1])]]),
        node_names=narrow(np.concatenate([np.zeros(1, np.int64), np.array(by_place, np.int64)[which]])),
        node_files=narrow(np.concatenate([[0], file_numbers[calls.call_files[used]]])),
        node_lines=narrow(np.concatenate([np.zeros(1, np.uint64), calls.call_lines[used]])),
        text_bounds=bounds,
        texts=texts,
    )


def _with_ancestors(place_nodes: I64, parents: I64) -> npt.NDArray[np.bool_]:
    is_used = np.zeros(parents.size, np.bool_)
    is_used[NO_NODE] = True
    fresh = place_nodes
    while fresh.size:
        is_used[fresh] = True
        above = parents[fresh]
        fresh = above[~is_used[above]]
    return is_used


def narrow(numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.unsignedinteger]:
    """The same numbers as narrow as they fit: files are small and searches touch less memory."""
    highest = int(numbers.max()) if numbers.size else 0
    for width in ("<u1", "<u2", "<u4"):
        if highest <= np.iinfo(width).max:
            return numbers.astype(width)
    return numbers.astype("<u8")


def pool(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.uint8]]:
    """Bounds and bytes of texts that lie one after another."""
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=bounds[1:])
    return narrow(bounds), np.frombuffer(b"".join(texts), np.uint8)
