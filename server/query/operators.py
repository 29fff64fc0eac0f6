# SPDX-License-Identifier: Apache-2.0
"""What is done to the frames of a graph before it is shown, as people write it, and applied to a tree (server.profile.reshape).

Order: focus and ignore choose whole stacks; kernel frames go; callers and callees hang up what is left; frames are named by their unit;
recursion collapses; the tree is turned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from server.profile.nametable import NameSort
from server.profile.nametree import NameTree
from server.profile.packages import SMALL, Unit, by_unit
from server.profile.reshape import Reshaped, callees, callers, renamed, turned, unchanged, with_frame, without_frame
from server.profile.search import match_names
from server.profile.totals import Mask
from server.query.complaint import QueryError
from server.query.regex import SearchMode, search

EXACTLY, BY_REGEX = "=", "~"


@dataclass(frozen=True, slots=True)
class Operators:
    """Frames are meant by `=name` (this one), `~regex` (RE2, anywhere in the name) or any other text, found anywhere, whatever its case."""

    focus: str = ""
    """Only stacks with such a frame."""
    ignore: str = ""
    """No stack with such a frame."""
    callers: str = ""
    """Of these frames, up to the root."""
    callees: str = ""
    """Of these frames, down to the leaf."""
    unit: Unit = Unit.FUNCTION
    is_without_kernel: bool = False
    """Time in the kernel counts for the frame that went there."""
    is_collapsed: bool = False
    """A function that calls itself is one frame."""
    is_inverted: bool = False
    """Leaf first."""

    @property
    def is_nothing(self) -> bool:
        """Whether the graph stays as it is."""
        return replace(self, unit=Unit.FUNCTION) == NO_OPERATORS if self.is_by_line else self == NO_OPERATORS

    @property
    def is_by_line(self) -> bool:
        """Whether the tree's names are functions at one line."""
        return self.unit is Unit.LINE

    @property
    def leave_stacks_out(self) -> bool:
        """Whether some stacks may not be in the graph."""
        return bool(self.focus or self.ignore or self.callers or self.callees)

    def check(self) -> None:
        """Raise QueryError for what no tree can answer, before any work."""
        if self.callers and self.callees:
            raise QueryError("callers and callees exclude one another", hint="ask for one of them at a time")
        for name in ("focus", "ignore", "callers", "callees"):
            if getattr(self, name):
                try:
                    frame_test(getattr(self, name))
                except QueryError as error:
                    raise QueryError(f"{name}: {error}", hint=error.hint, text=error.text, position=error.position) from error

    def apply(self, tree: NameTree, used: Mask) -> Reshaped:
        """Reshape a tree; `used` masks the nodes that stacks with a value end in."""
        made = unchanged(tree)
        for step in self._steps():
            made = made.then(step(made.tree, _carried(made, used)))
        return made

    def _steps(self) -> "list[_Step]":
        steps: list[_Step] = []
        if self.focus:
            steps.append(lambda tree, _: with_frame(tree, _mask(tree, self.focus)))
        if self.ignore:
            steps.append(lambda tree, _: without_frame(tree, _mask(tree, self.ignore)))
        if self.is_without_kernel and (self.callers or self.callees):
            steps.append(lambda tree, used: renamed(tree, by_unit(tree.table, Unit.FUNCTION, with_kernel=False), used))
        if self.callers:
            steps.append(lambda tree, used: callers(tree, _mask(tree, self.callers), used))
        if self.callees:
            steps.append(lambda tree, used: callees(tree, _mask(tree, self.callees), used))
        if self.is_without_kernel or self.is_collapsed or self.unit not in SMALL:
            steps.append(self._renamed)
        if self.is_inverted:
            steps.append(turned)
        return steps

    def _renamed(self, tree: NameTree, used: Mask) -> Reshaped:
        names = by_unit(tree.table, self.unit, with_kernel=not self.is_without_kernel, is_collapsed=self.is_collapsed)
        return renamed(tree, names, used)


NO_OPERATORS = Operators()
_Step = Callable[[NameTree, Mask], Reshaped]


def frame_test(text: str) -> Callable[[str], bool]:
    """Give the test whether a name is meant. Raises QueryError for a bad regex."""
    if text.startswith(EXACTLY):
        return lambda name: name == text[1:]
    if text.startswith(BY_REGEX):
        return search(text[1:], SearchMode.REGEX)
    return search(text, SearchMode.TEXT)


def _mask(tree: NameTree, text: str) -> Mask:
    is_frame: Mask = np.array(tree.table.sorts) != NameSort.LABEL
    return match_names(tree.table, frame_test(text)) & is_frame


def _carried(made: Reshaped, used: Mask) -> Mask:
    """Mask the nodes of the new tree that used ones became."""
    carried = np.zeros(len(made.tree), np.bool_)
    places = made.place[used]
    carried[places[places >= 0]] = True
    return carried
