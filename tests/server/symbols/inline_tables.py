# SPDX-License-Identifier: Apache-2.0
"""Inline chains written down by hand."""

import numpy as np

from server.symbols.inlines import Inlines

Place = tuple[int, int, int, int]
"""(start, node, file, line)."""
Node = tuple[int, int, int, int]
"""(parent, name, file, line) of nodes from 1 on."""


def inlines(texts: list[bytes], places: list[Place], nodes: list[Node], base: int = 0) -> Inlines:
    """Columns of these rows; texts are numbered from 1."""
    all_texts = [b"", *texts]
    starts, of_node, files, lines = (np.array(column, np.uint32) for column in zip(*places, strict=True))
    parents, names, call_files, call_lines = (np.array(column, np.uint32) for column in zip((0, 0, 0, 0), *nodes, strict=True))
    bounds = np.cumsum([0, *[len(text) for text in all_texts]]).astype(np.uint32)
    blob = np.frombuffer(b"".join(all_texts), np.uint8)
    return Inlines(base, starts - np.uint32(base), of_node, files, lines, parents, names, call_files, call_lines, bounds, blob)


def shop() -> Inlines:
    """main [0x100, 0x200) with half() inlined at 0x110..0x140, and third() into that at 0x120..0x130; nothing from 0x200 on."""
    texts = [b"main", b"half", b"third", b"/src/main.c", b"/src/half.h"]
    nodes = [(0, 1, 0, 0), (1, 2, 4, 7), (2, 3, 5, 23)]
    places = [
        (0x100, 1, 4, 3),
        (0x110, 2, 5, 11),
        (0x120, 3, 5, 13),
        (0x130, 2, 5, 0),
        (0x140, 1, 4, 9),
        (0x200, 0, 0, 0),
    ]
    return inlines(texts, places, nodes, base=0x100)
