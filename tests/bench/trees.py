# SPDX-License-Identifier: Apache-2.0
"""Large call trees for the benches, drawn from a seed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.names import CodeKind, FunctionTable
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder

NAMES, TAIL_FRAMES = 20_000, 8


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """A tree by name, and what was sampled of it: for each stack its node and its samples, a few stacks having most."""

    tree: NameTree
    nodes: Indices
    weights: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrawnStacks:
    """Stacks as a prefix tree: parent and name by node, root first, and the node that each stack ends in."""

    parents: Indices
    names: Indices
    ends: Indices
    weights: npt.NDArray[np.float64]
    """Samples by stack."""


def draw_stacks(node_count: int) -> DrawnStacks:
    """Stacks of about so many nodes.

    They grow in turn from nodes of earlier ones, by up to TAIL_FRAMES frames, as samples of a program share their callers.
    """
    random = np.random.default_rng(17)
    tails = random.integers(1, TAIL_FRAMES, node_count // 2)
    tails = tails[np.cumsum(tails) < node_count]
    ends = np.cumsum(tails)
    total = int(ends[-1]) + 1
    parents = np.arange(total) - 1
    parents[0] = 0
    firsts = ends - tails + 1
    # A stack leaves an earlier one anywhere; early ones, which lie near the root, more often.
    parents[firsts] = (random.random(firsts.size) ** 1.4 * (firsts - 1)).astype(np.intp)
    names = 1 + (random.random(total) ** 2 * (NAMES - 1)).astype(np.intp)
    names[0] = 0
    return DrawnStacks(parents, names, ends, random.zipf(2.0, ends.size).clip(max=50_000).astype(np.float64))


def draw_tree(node_count: int) -> DrawnTree:
    """The tree by name of such stacks."""
    drawn = draw_stacks(node_count)
    table = NameTable()
    table.intern(_functions())
    builder = TreeBuilder(table)
    builder.extend(drawn.parents, drawn.names)
    tree, nodes = builder.tree()
    return DrawnTree(tree, nodes[drawn.ends], drawn.weights)


def wide_tree(columns: int, rows: int) -> DrawnTree:
    """A tree in which every node is 1 / columns wide: nobody can leave one out. At most 2,000 columns."""
    numbers = np.arange(columns * rows)
    column, row = numbers // rows, numbers % rows
    parents = np.concatenate([[0], np.where(row == 0, 0, numbers)])
    names = np.concatenate([[0], 1 + (column * 7 + row * 331) % NAMES])
    table = NameTable()
    table.intern(_functions())
    builder = TreeBuilder(table)
    builder.extend(parents.astype(np.intp), names.astype(np.intp))
    tree, nodes = builder.tree()
    return DrawnTree(tree, nodes[1 + numbers[row == rows - 1]], np.ones(columns))


def _functions() -> FunctionTable:
    names = [f"package_{number % 97}::function_{number}" for number in range(NAMES)]
    return FunctionTable(
        names=names,
        raw_names=names,
        binaries=[f"library_{number % 23}.so" for number in range(NAMES)],
        codes=np.full(NAMES, CodeKind.NATIVE, np.uint8),
        is_named=np.ones(NAMES, np.bool_),
        files=[""] * NAMES,
        lines=np.zeros(NAMES, np.int32),
    )
