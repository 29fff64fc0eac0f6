# SPDX-License-Identifier: Apache-2.0
"""From places of frames to what they are made of: the function, and what was inlined into it, each with its file and line.

The outermost function has the name of its symbol, by the rules of server/symbols/symtab.py; the debug data's own name counts where
there is no symbol, or one without a size. Inlined calls have the debug data's names only; one whose name is not there (a debug file
without the common file of dwz) is left out, and its time is that of what it was inlined into.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.inlines import MAX_CHAIN, NO_NODE, Inlines
from server.symbols.resolve import Placed
from server.symbols.symtab import I64
from server.symbols.table import Table


@dataclass(frozen=True, slots=True)
class Unfolded:
    """Parts of frames as columns, by frame and then from the outermost function in; every frame has at least one."""

    frames: I64
    """Row of the frame among those placed."""
    symbols: I64
    """The symbol that names the part, -1 for none."""
    names: I64
    """Number of the text that names it when no symbol does; 0 for none."""
    is_inlined: npt.NDArray[np.bool_]
    files: I64
    """Number of the text; 0 for none."""
    lines: I64

    def __len__(self) -> int:
        return int(self.frames.size)


def unfold(placed: Placed, table: Table | None) -> Unfolded:
    """All parts of all frames at once."""
    rows = np.arange(placed.symbols.size)
    if table is None or table.inlines is None:
        none = np.zeros(rows.size, np.int64)
        return Unfolded(rows, placed.symbols, none, np.zeros(rows.size, np.bool_), none, none)
    levels = _levels(placed, table.inlines)
    frames, nodes, files, lines = (np.concatenate([level[i] for level in levels]) for i in range(4))
    order = np.lexsort((-np.repeat(np.arange(len(levels)), [level[0].size for level in levels]), frames))
    frames, nodes, files, lines = frames[order], nodes[order], files[order], lines[order]
    names = table.inlines.node_names[nodes].astype(np.int64)
    is_inlined = table.inlines.node_parents[nodes] != NO_NODE
    symbols = np.where(is_inlined, -1, placed.symbols[frames])
    is_named = symbols >= 0
    is_named[is_named] = ~(table.is_inexact(symbols[is_named]) & (names[is_named] != 0))
    keep = ~is_inlined | (names != 0)
    unfolded = Unfolded(frames, np.where(is_named, symbols, -1), np.where(is_named, 0, names), is_inlined, files, lines)
    if keep.all():
        return unfolded
    return Unfolded(*(getattr(unfolded, name)[keep] for name in Unfolded.__slots__))


def _levels(placed: Placed, inlines: Inlines) -> list[tuple[I64, I64, I64, I64]]:
    """(frames, nodes, files, lines) from the innermost out."""
    rows = np.arange(placed.places.size)
    has_place = placed.places >= 0
    at = np.where(has_place, placed.places, 0)
    if not len(inlines):
        has_place, at = np.zeros(rows.size, np.bool_), np.zeros(0, np.int64)
    nodes, files, lines = (np.zeros(rows.size, np.int64) for _ in range(3))
    for column, source in ((nodes, inlines.place_nodes), (files, inlines.place_files), (lines, inlines.place_lines)):
        column[has_place] = source[at[has_place]]
    levels = [(rows, nodes, files, lines)]
    for _ in range(MAX_CHAIN):
        parents = inlines.node_parents[nodes].astype(np.int64)
        inner = np.flatnonzero(parents != NO_NODE)
        if not inner.size:
            break
        rows, files = rows[inner], inlines.node_files[nodes[inner]].astype(np.int64)
        lines = inlines.node_lines[nodes[inner]].astype(np.int64)
        nodes = parents[inner]
        levels.append((rows, nodes, files, lines))
    return levels
