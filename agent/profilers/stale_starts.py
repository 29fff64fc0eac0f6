# SPDX-License-Identifier: Apache-2.0
"""Forgets starts of waits and calls that were under way when their programs were detached: nobody sees their end, and a map that they fill
has no room for those that are timed."""

import numpy as np
import numpy.typing as npt

from agent.kernel import program as kernel

_CHUNK = 1024


def forget_before(starts_map: int, key_bytes: int, start: npt.DTypeLike, since_ns: int) -> int:
    """Remove what began before `since_ns` from a map; `start` is the dtype of its values, with a field start_ns. How many there were.

    One that ends meanwhile is not there any more, and not counted here.
    """
    count = 0
    for keys, starts in list(kernel.read_all(starts_map, np.dtype(f"V{key_bytes}"), np.dtype(start), _CHUNK)):
        for key in keys[starts["start_ns"] < since_ns]:
            count += kernel.delete(starts_map, key.tobytes())
    return count
