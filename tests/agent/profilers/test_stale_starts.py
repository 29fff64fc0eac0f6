# SPDX-License-Identifier: Apache-2.0
"""Starts of before are removed, those of now stay, and what ends meanwhile is not counted."""

from collections.abc import Iterator

import numpy as np
import pytest

from agent.kernel import program as kernel
from agent.profilers.stale_starts import forget_before

START = np.dtype([("start_ns", "<u8"), ("tid", "<u4"), ("call", "<u4")])


def test_what_began_before_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    began = {tid.to_bytes(4, "little"): 100 * tid for tid in range(1, 8)}
    gone = (2).to_bytes(4, "little")

    def read_all(descriptor: int, key_type: "np.dtype[np.void]", value_type: "np.dtype[np.void]", _: int) -> Iterator[object]:
        assert (descriptor, value_type) == (23, START)
        keys, values = np.array(list(began), key_type), np.zeros(len(began), START)
        values["start_ns"] = list(began.values())
        yield keys[:5], values[:5]
        yield keys[5:], values[5:]
        began.pop(gone)

    monkeypatch.setattr(kernel, "read_all", read_all)
    monkeypatch.setattr(kernel, "delete", lambda _, key: began.pop(key, None) is not None)
    assert forget_before(23, 4, START, 600) == 4  # 1, 3, 4 and 5; 2 has ended by itself
    assert list(began.values()) == [600, 700]
