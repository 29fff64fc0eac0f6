# SPDX-License-Identifier: Apache-2.0
"""Diffs from rows of (frames root first, values by replicate), and a drawn service whose true changes are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.diff import Diff, Side, compare
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder
from tests.server.profile.trees import functions, prefix_tree

Stacks = Sequence[tuple[Sequence[str], Sequence[int]]]


def named_tree(stacks: Sequence[Sequence[str]]) -> tuple[NameTree, Indices]:
    """The tree of stacks, and the node of each."""
    parents, names, ends = prefix_tree(stacks)
    table = NameTable()
    numbers = np.concatenate([np.zeros(1, np.intp), table.intern(functions(names[1:]))])
    builder = TreeBuilder(table)
    builder.extend(np.array(parents, np.intp), numbers)
    tree, nodes = builder.tree()
    return tree, nodes[np.array(ends, np.intp)]


def diff_of(a: Stacks, b: Stacks, observed: tuple[int, int] | None = None) -> Diff:
    """Compare two sides; without `observed` every unit of a value is a sample."""
    tree, nodes = named_tree([frames for frames, _ in (*a, *b)])
    sides = []
    for stacks, mine, given in ((a, nodes[: len(a)], 0), (b, nodes[len(a) :], 1)):
        values = np.array([counts for _, counts in stacks] or np.zeros((0, 1)), np.uint64).T
        sides.append(Side(mine, values, observed[given] if observed else int(values.sum())))
    return compare(tree, sides[0], sides[1])


def node_of(diff: Diff, *frames: str) -> int:
    """The node at the end of a path."""
    node, tree = 0, diff.tree
    for frame in frames:
        under = np.flatnonzero((tree.parent == node) & (np.arange(len(tree)) > 0))
        (node,) = (n for n in under.tolist() if tree.table.names[tree.name[n]] == frame)
    return node


@dataclass(frozen=True, slots=True)
class Service:
    """main calls 12 handlers of 8 steps each; a step calls one function of its own and three that others call as well."""

    tree: NameTree
    nodes: Indices
    names: tuple[str, ...]
    """What each stack ends in."""


def service() -> Service:
    """494 nodes, 492 of them with self time."""
    stacks = []
    for h in range(12):
        stacks.append(("main", f"handle_{h}"))
        for s in range(8):
            step = ("main", f"handle_{h}", f"step_{h}_{s}")
            stacks += [step, (*step, f"inner_{h}_{s}"), *((*step, f"lib_{(h * 8 + s + i * 7) % 40}") for i in (1, 2, 3))]
    tree, nodes = named_tree(stacks)
    return Service(tree, nodes, tuple(stack[-1] for stack in stacks))


@dataclass(frozen=True, slots=True)
class Noise:
    """How replicates differ: each has gamma distributed load, each stack gamma distributed weight on each replicate."""

    replicates: int
    spread: float
    """Standard deviation of a stack's weight over its mean; over-dispersion beyond counting."""


def drawn_side(random: np.random.Generator, nodes: Indices, weights: npt.NDArray[np.float64], noise: Noise) -> Side:
    """Samples of a side: `weights` are the expected counts by stack."""
    shape = 1 / noise.spread**2
    load = random.gamma(4, 1 / 4, (noise.replicates, 1)) / noise.replicates
    counts = random.poisson(random.gamma(shape, 1 / shape, (noise.replicates, weights.size)) * weights * load)
    return Side(nodes, counts.astype(np.uint64), int(counts.sum()))
