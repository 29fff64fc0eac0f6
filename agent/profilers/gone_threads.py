# SPDX-License-Identifier: Apache-2.0
"""Which threads have ended while no program was attached that would have told: where no iterator meets all threads (before Linux 6.15)."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

MOST_SOUGHT = 4096
"""Threads that are looked for at once, some 3 us each; the others come next time."""


class GoneThreads:
    """Looks for them in /proc, a part at a time."""

    def __init__(self, proc_root: Path | None) -> None:
        """`proc_root` shows every thread of the host; None when none does."""
        self._proc_root = proc_root
        self._next_tid = 0

    def among(self, tids: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Which of these are gone, as far as they were looked for. Where nothing shows them all are taken for gone: the entry of one that
        lives is made anew by its next event, while one that does not would wait for ever."""
        if self._proc_root is None:
            return np.ones(len(tids), np.bool_)
        is_gone = np.zeros(len(tids), np.bool_)
        order = np.argsort(tids)
        first = int(np.searchsorted(tids, self._next_tid, sorter=order))
        sought = np.roll(order, -first)[:MOST_SOUGHT]
        is_gone[sought] = [not (self._proc_root / str(tid)).exists() for tid in tids[sought].tolist()]
        self._next_tid = int(tids[sought[-1]]) + 1 if len(sought) else 0
        return is_gone
