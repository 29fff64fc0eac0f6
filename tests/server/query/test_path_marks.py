# SPDX-License-Identifier: Apache-2.0
"""A mark anywhere on the way to the root is found."""

import numpy as np

from server.profile.nametable import PathFlag, mark_flags
from server.query.path_marks import bits_of_paths
from server.store.protocol import ServiceDictionary


def test_mark_is_found_far_up_a_path() -> None:
    depth = 254
    none = np.zeros(depth + 2, np.uint32)
    parents = np.array([0, *range(depth + 1)], np.uint32)
    frames = np.array([0, 1, *[2] * depth], np.uint32)  # the outermost is the mark
    dictionary = ServiceDictionary(
        "shop", np.array([0, 6, 1], np.uint8), none[:3], np.array([0, 17, 0x10], np.uint64), np.zeros(3, np.uint8),
        parents, frames, none, none, none, none, none, [b""],
    )  # fmt: skip
    bits = bits_of_paths(dictionary, mark_flags)
    assert bits.tolist() == [0, *[int(PathFlag.UNWIND_STOPPED)] * (depth + 1)]
