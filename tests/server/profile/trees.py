# SPDX-License-Identifier: Apache-2.0
"""Builds small trees from rows of (frames root first, value), and reads them back as the same rows."""

from collections.abc import Iterable, Sequence

import numpy as np

from server.profile.calltree import Indices
from server.profile.names import CodeKind, FunctionTable
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.totals import WeighedTree, weigh

Row = tuple[Sequence[str], int]


def functions(names: Sequence[str], codes: Sequence[int] | None = None, binary: str = "app") -> FunctionTable:
    """Functions of one binary; "[unknown]..." are those without a name."""
    kinds = [CodeKind.NATIVE] * len(names) if codes is None else codes
    return FunctionTable(
        names=list(names),
        raw_names=list(names),
        binaries=[binary] * len(names),
        codes=np.array(kinds, np.uint8),
        is_named=np.array([not name.startswith("[unknown]") for name in names], np.bool_),
        files=[""] * len(names),
        lines=np.zeros(len(names), np.int32),
    )


def prefix_tree(stacks: Iterable[Sequence[str]]) -> tuple[list[int], list[str], list[int]]:
    """Parents and names of the prefix tree of stacks (root first), and the node of each stack."""
    parents, names, ends = [0], [""], []
    index: dict[tuple[int, str], int] = {}
    for stack in stacks:
        node = 0
        for name in stack:
            known = index.get((node, name))
            if known is None:
                known = index[(node, name)] = len(parents)
                parents.append(node)
                names.append(name)
            node = known
        ends.append(node)
    return parents, names, ends


def weighed(rows: Sequence[Row], table: NameTable | None = None) -> WeighedTree:
    """The tree of the rows with their values on it."""
    tree, nodes = tree_of_stacks([frames for frames, _ in rows], table)
    return weigh(tree, nodes, np.array([value for _, value in rows], np.float64))


def tree_of_stacks(stacks: Iterable[Sequence[str]], table: NameTable | None = None) -> tuple[NameTree, Indices]:
    """The tree of stacks (root first), and the node of each."""
    table = table or NameTable()
    parents, names, ends = prefix_tree(stacks)
    numbers = table.intern(functions(names[1:]))
    builder = TreeBuilder(table)
    builder.extend(np.array(parents, np.intp), np.concatenate([np.zeros(1, np.intp), numbers]))
    tree, nodes = builder.tree()
    return tree, nodes[np.array(ends, np.intp)]


def path(tree: WeighedTree, node: int) -> tuple[str, ...]:
    """Names from the root to the node."""
    frames: list[str] = []
    while node:
        frames.append(tree.tree.table.names[tree.tree.name[node]])
        node = int(tree.tree.parent[node])
    return tuple(reversed(frames))


def rows_of(tree: WeighedTree) -> dict[tuple[str, ...], int]:
    """Self values by path."""
    return {path(tree, n): int(tree.own[n]) for n in range(len(tree.tree)) if tree.own[n]}


def totals_of(tree: WeighedTree) -> dict[tuple[str, ...], int]:
    """Totals by path, the root's under the empty one."""
    return {path(tree, n): int(tree.total[n]) for n in range(len(tree.tree))}
