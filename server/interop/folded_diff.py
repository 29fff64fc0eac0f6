# SPDX-License-Identifier: Apache-2.0
"""Diffs of folded files: each is one piece of counts, so its noise is that of counting (see server.profile.diff)."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from server.errors import BadRequest
from server.interop.folded import FoldedLines, FoldedStack, Frame, Imported
from server.profile.calltree import ROOT, Indices
from server.profile.diff import U64, Side, compare
from server.profile.names import CodeKind, FunctionTable
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree, TreeBuilder
from server.profile.top import first_calls
from server.query.diff_query import DiffAnswer, SideAnswer, notes_of
from server.query.kinds import CPU
from server.query.operators import NO_OPERATORS, Operators
from server.query.sides import reshaped_sides

MOST_SAMPLES = 1 << 53
"""Larger sums are not exact."""


@dataclass(frozen=True, slots=True)
class FoldedSide:
    """What a side was read from."""

    text: str
    """Name of the file, or the selector that a server was asked for."""
    imported: Imported | FoldedLines
    """Lines are read while the sides are compared."""
    has_threads: bool = True
    """The outermost name of each stack is its thread's; pprof has none."""


def folded_diff(a: FoldedSide, b: FoldedSide, operators: Operators = NO_OPERATORS) -> DiffAnswer:
    """Compare two folded texts or profiles. Threads are left out when one side has none.

    Raises BadRequest when counts are too large to add.
    """
    prefixes = _Prefixes(with_threads=a.has_threads and b.has_threads)
    sides = [_side(prefixes, given) for given in (a, b)]
    tree, nodes = prefixes.built()
    made = [Side(nodes[stacks], counts[np.newaxis, :], int(counts.sum())) for stacks, counts in sides]
    if not operators.is_nothing:
        tree, made[0], made[1] = reshaped_sides(tree, operators, *made)
    diff = compare(tree, *made)
    answers = [
        SideAnswer(given.text, None, 0.0, int(counts.sum()), 0, int(counts.any()), None)
        for given, (_, counts) in zip((a, b), sides, strict=True)
    ]
    notes = (*_rejected(a, b), *notes_of(diff, answers))
    return DiffAnswer("folded", CPU.columns[0], answers[0], answers[1], diff, lambda: first_calls(tree), notes)


class _Prefixes:
    """The prefix tree of stacks, both sides' in one. It grows with the distinct stacks; what is read of a file is not kept."""

    def __init__(self, with_threads: bool) -> None:
        self.table = NameTable()
        self._with_threads = with_threads
        self._numbers: dict[str | Frame, int] = {}
        """Of threads and frames, as they come."""
        self._nodes: dict[int, int] = {}
        """By parent << 32 | number: one int takes a third of a tuple's memory."""
        # The stack before: sorted files share most of it with the next one.
        self._path: tuple[str | Frame, ...] = ()
        self._trail = [ROOT]

    def __len__(self) -> int:
        """Number of nodes, the root included."""
        return len(self._nodes) + 1

    def add(self, stack: FoldedStack) -> int:
        """Give the node of a stack."""
        path: tuple[str | Frame, ...] = (stack.thread, *stack.frames) if self._with_threads else stack.frames
        shared = next(
            (i for i, (old, new) in enumerate(zip(self._path, path, strict=False)) if old is not new), min(len(self._path), len(path))
        )
        del self._trail[shared + 1 :]
        node = self._trail[-1]
        for frame in path[shared:]:
            number = self._numbers.setdefault(frame, len(self._numbers))
            node = self._nodes.setdefault(node << 32 | number, len(self._nodes) + 1)
            self._trail.append(node)
        self._path = path
        return node

    def built(self) -> tuple[NameTree, Indices]:
        """Give the tree and the node of it for each of ours, which are forgotten first: they take twice the memory of the tree."""
        parents, names = self._columns()
        self._nodes.clear()
        builder = TreeBuilder(self.table)
        builder.extend(parents, names)
        del parents, names
        return builder.tree()

    def _columns(self) -> tuple[Indices, Indices]:
        """Give parents and names by node."""
        frames = sorted((one for one in self._numbers if isinstance(one, Frame)), key=lambda frame: (frame.name, frame.is_kernel))
        in_table: dict[str | Frame, int] = dict(zip(frames, self.table.intern(_functions(frames)).tolist(), strict=True))
        in_table |= {label: self.table.label(label) for label in self._numbers if isinstance(label, str)}
        numbers = np.array([0, *(in_table[one] for one in self._numbers)], np.intp)
        keys = np.fromiter(self._nodes, np.int64, len(self._nodes))
        names = np.zeros(keys.size + 1, np.intp)
        names[1:] = numbers[(keys & 0xFFFFFFFF) + 1]
        keys >>= 32
        return np.insert(keys, 0, ROOT), names


def _functions(frames: list[Frame]) -> FunctionTable:
    names = [frame.name for frame in frames]
    return FunctionTable(
        names=names,
        raw_names=names,
        binaries=["kernel" if frame.is_kernel else "" for frame in frames],
        codes=np.array([CodeKind.KERNEL if frame.is_kernel else CodeKind.NATIVE for frame in frames], np.uint8),
        is_named=np.array([not frame.name.startswith("[unknown]") for frame in frames], np.bool_),
        files=[""] * len(frames),
        lines=np.zeros(len(frames), np.int32),
    )


def _side(prefixes: _Prefixes, given: FoldedSide) -> tuple[Indices, U64]:
    """Give the nodes in which stacks of a side end, and their counts."""
    counts, total = array("Q"), 0
    for stack in given.imported.stacks:
        total += stack.count
        if total >= MOST_SAMPLES:
            raise BadRequest(f"the counts of {given.text} add up to 2^53 or more, which cannot be added exactly")
        node = prefixes.add(stack)
        counts.frombytes(bytes(counts.itemsize * max(0, len(prefixes) - len(counts))))
        counts[node] += stack.count
    by_node = np.array(counts, np.uint64)
    nodes = np.flatnonzero(by_node)
    return nodes, by_node[nodes]


def _rejected(*sides: FoldedSide) -> Iterable[str]:
    for side in sides:
        if side.imported.rejected_total:
            first = side.imported.rejected[0]
            yield f"{side.text}: {side.imported.rejected_total} lines are no stacks, the first is line {first.line}: {first.reason}"
