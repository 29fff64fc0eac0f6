# SPDX-License-Identifier: Apache-2.0
"""Inline chains and lines of one binary, as columns that are searched where they lie.

A place is a range of addresses with one innermost node, one file and one line. A node is a function or one inlined call of one;
the chain of a place is its node, what that was inlined into, and so on. A frame of the chain has the node's name and stands at
the place's own file and line (innermost), or where the frame before it was called (the others).
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Column = npt.NDArray[np.integer]

NO_NODE = 0
"""Node 0: no function is known, only a line may be."""
MAX_CHAIN = 256


@dataclass(frozen=True, slots=True)
class Inlines:
    """Columns of places, of nodes, and the texts they refer to by number."""

    base: int
    """Added to `starts`."""
    starts: Column
    """First address of each place, ascending; a place reaches to the next one."""
    place_nodes: Column
    place_files: Column
    place_lines: Column
    """0 for none."""
    node_parents: Column
    """The node it was inlined into, always a smaller number; NO_NODE for functions."""
    node_names: Column
    """Number of the name; 0 is the empty one."""
    node_files: Column
    """Where it was called, for inlined calls."""
    node_lines: Column
    text_bounds: Column
    """Text i is texts[text_bounds[i]:text_bounds[i + 1]]; names and files share them. Text 0 is empty."""
    texts: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return int(self.starts.size)

    def find(self, addresses: U64) -> I64:
        """The place of each address, -1 before the first one."""
        relative = addresses - np.uint64(self.base)
        highest = np.uint64(np.iinfo(self.starts.dtype).max)
        is_near = (addresses >= np.uint64(self.base)) & (relative <= highest)
        wanted = np.where(is_near, relative, 0).astype(self.starts.dtype)
        places = np.searchsorted(self.starts, wanted, "right") - 1
        return np.where(is_near, places, -1)

    def shifted(self, by: int) -> "Inlines":
        """The same, `by` bytes further on."""
        return replace(self, base=self.base + by)

    def text(self, number: int) -> bytes:
        """A name or a path as the binary has it."""
        return self.texts[int(self.text_bounds[number]) : int(self.text_bounds[number + 1])].tobytes()

    def flaw(self) -> str:
        """Why the columns must not be used; "" when everything that a search relies on holds."""
        places, nodes, texts = self.starts.size, self.node_parents.size, self.text_bounds.size - 1
        if any(column.size != places for column in (self.place_nodes, self.place_files, self.place_lines)):
            return "columns of places differ in length"
        if any(column.size != nodes for column in (self.node_names, self.node_files, self.node_lines)) or not nodes or texts < 1:
            return "columns of nodes differ in length"
        if np.any(self.starts[1:] <= self.starts[:-1]):
            return "places are not sorted"
        if places and (int(self.place_nodes.max()) >= nodes or int(self.place_files.max()) >= texts):
            return "a place refers to nothing"
        if np.any(self.node_parents[1:] >= np.arange(1, nodes)) or int(self.node_parents[0]) != NO_NODE:
            return "a node is inlined into a later one"
        if int(self.node_names.max()) >= texts or int(self.node_files.max()) >= texts:
            return "a node refers to nothing"
        bounds = self.text_bounds
        if int(bounds[0]) or np.any(bounds[1:] < bounds[:-1]) or int(bounds[-1]) > self.texts.size or int(bounds[1]):
            return "texts are not sorted"
        return ""
