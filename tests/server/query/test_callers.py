# SPDX-License-Identifier: Apache-2.0
"""The function a stack stands for is its innermost frame that is neither kernel nor C library."""

import numpy as np
import pytest

from server.profile.names import CodeKind
from server.profile.nametable import NameTable
from server.profile.nametree import TreeBuilder
from server.query.callers import own_frames
from tests.server.profile.trees import functions

CODES = {"k": CodeKind.KERNEL, "[": CodeKind.MARK}


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (["main", "take", "libc", "kfutex"], "take"),
        (["main", "take"], "take"),
        (["libc", "kread"], "kread"),
        (["main", "[exited]"], "main"),
        ([], ""),
    ],
)
def test_own_frame(stack: list[str], expected: str) -> None:
    table = NameTable()
    numbers = [
        int(table.intern(functions([name], [CODES.get(name[0], CodeKind.CPP)], "libc.so.6" if name == "libc" else "app"))[0])
        for name in stack
    ]
    builder = TreeBuilder(table)
    builder.extend(np.array([0, *range(len(stack))], np.intp), np.array([0, *numbers], np.intp))
    tree, nodes = builder.tree()
    (node,) = own_frames(tree, nodes[-1:])
    assert table.names[tree.name[node]] == expected
