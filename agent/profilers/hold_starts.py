# SPDX-License-Identifier: Apache-2.0
"""Forgets starts of holds whose end will not be seen, so that the map has room for those that are timed (bpf/hold.bpf.c).

A thread may end while it has a lock, the programs may be detached as it lets go, and what is not a mutex is let go of without a call.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.kernel import program as kernel

HOLD_START_KEY = np.dtype([("thread_start_ns", "<u8"), ("lock", "<u8"), ("tid", "<u4"), ("padding", "<u4")])
"""struct hold_start_key in bpf/hold.bpf.c."""
MOST_HELD_NS = 600_000_000_000
"""What is held for longer is not waited for any more: its length stays unknown."""
MOST_KEPT = 8192
"""Starts that are left after a look, the latest: half of HOLD_ENTRIES, so that the window that begins has the other half."""
_CHUNK = 1024


class HoldStarts:
    """The BPF map `holds`."""

    def __init__(self, starts_map: int, proc_root: Path | None) -> None:
        """`proc_root` shows every thread of the host; None when none does, then those that have ended are not known."""
        self._map = starts_map
        self._proc_root = proc_root

    def forget_unended(self, on_since_ns: int, now_ns: int) -> int:
        """Remove them, where the programs have been attached since `on_since_ns`. How many: so many holds are of unknown length."""
        pieces = list(kernel.read_all(self._map, HOLD_START_KEY, np.dtype("<u8"), _CHUNK))
        keys = np.concatenate([np.zeros(0, HOLD_START_KEY), *(piece[0] for piece in pieces)])
        began_ns = np.concatenate([np.zeros(0, np.uint64), *(piece[1] for piece in pieces)])
        is_unended = ~is_recent(began_ns, max(on_since_ns, now_ns - MOST_HELD_NS))
        left = np.flatnonzero(~is_unended)
        is_unended[left] = self._are_gone(keys["tid"][left])
        # One that ended since it was read is not there any more, and not counted here.
        return sum(kernel.delete(self._map, key.tobytes()) for key in keys[is_unended])

    def _are_gone(self, tids: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        if self._proc_root is None:
            return np.zeros(len(tids), np.bool_)
        distinct, of_row = np.unique(tids, return_inverse=True)
        is_gone = np.array([not (self._proc_root / str(tid)).exists() for tid in distinct.tolist()], np.bool_)
        return is_gone[of_row.ravel()]


def is_recent(began_ns: npt.NDArray[np.uint64], since_ns: int) -> npt.NDArray[np.bool_]:
    """Which of the starts are not before a moment, and among the MOST_KEPT latest."""
    found = began_ns >= max(since_ns, 0)
    found[np.argsort(began_ns)[:-MOST_KEPT]] = False
    return found
