# SPDX-License-Identifier: Apache-2.0
"""Who stands behind a stack, in one name: its innermost frame that is the program's own, neither kernel nor C library.

A thread that waits for a lock stands in futex_wait, below it in libc; what people want to hear is the function that took the lock.
"""

import numpy as np

from server.profile.calltree import ROOT, Indices
from server.profile.names import CodeKind
from server.profile.nametree import NameTree

_LIBRARIES = ("libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "[vdso]")


def own_frames(tree: NameTree, nodes: Indices) -> Indices:
    """Give the node of the innermost frame of one's own on the path to each node; the node itself when there is none."""
    table = tree.table
    is_foreign = np.array(
        [
            code in (CodeKind.KERNEL, CodeKind.MARK) or binary.startswith(_LIBRARIES)
            for code, binary in zip(table.codes, table.binaries, strict=True)
        ]
    )
    at = nodes.copy()
    open_ones = np.flatnonzero(at != ROOT)
    while open_ones.size:
        open_ones = open_ones[is_foreign[tree.name[at[open_ones]]]]
        at[open_ones] = tree.parent[at[open_ones]]
        open_ones = open_ones[at[open_ones] != ROOT]
    return np.where(at == ROOT, nodes, at)
