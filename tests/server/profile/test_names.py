# SPDX-License-Identifier: Apache-2.0
"""The nouns of names: lengths, and the numbers that the page knows."""

import numpy as np

from server.profile.names import CodeKind, FrameColumns, FunctionTable


def test_codes_are_those_of_the_page() -> None:
    names = ["NATIVE", "CPP", "RUST", "GO", "JAVA", "JAVASCRIPT", "PYTHON", "KERNEL", "MARK", "UNKNOWN"]
    assert [(code.name, code.value) for code in CodeKind] == [(name, number) for number, name in enumerate(names)]


def test_lengths() -> None:
    frames = FrameColumns(np.zeros(7, np.uint8), np.zeros(7, np.uint32), np.zeros(7, np.uint64), np.zeros(7, np.uint8))
    assert len(frames) == 7
    functions = FunctionTable(["f"], ["_Z1fv"], ["app"], np.zeros(1, np.uint8), np.ones(1, np.bool_), [""], np.zeros(1, np.int32))
    assert len(functions) == 1
