# SPDX-License-Identifier: Apache-2.0
"""What attaches the programs of locks, waits and holds alike, and reads what they counted."""

import numpy as np
import numpy.typing as npt

from agent.kernel import program as kernel
from agent.profilers.event_host import EventHost

_COUNTS = ("events", "waits", "filtered", "unpaired", "starts_full", "rows_full", "rows_busy")
LOCK_COUNTS = np.dtype([*((name, "<u8") for name in _COUNTS), ("due", "<u8", kernel.BUFFERS)])
"""struct lock_counts in bpf/shared/lock_rows.h."""
_KEY_ZERO = (0).to_bytes(4, "little")


class LockLinks:
    """Whoever attaches puts the descriptors into `attached`, ends of waits before starts."""

    def __init__(self, host: EventHost, counts_map: str) -> None:
        self.host = host
        self.attached: list[int] = []
        self._counts_map = host.program.map(counts_map)
        self.taken = self._counts()
        """LOCK_COUNTS of each CPU up to the last call of take_counts()."""
        self._due = [0] * kernel.BUFFERS

    def detach(self) -> None:
        """The last one first."""
        while self.attached:
            kernel.close(self.attached.pop())

    def events_per_cpu(self) -> npt.NDArray[np.uint64]:
        """What the breaker limits."""
        return self._counts()["events"].copy()

    def take_counts(self, buffer: int) -> dict[str, int]:
        """What all CPUs counted since the last call, by name; `due` is of this buffer, which nobody writes any more."""
        before, self.taken = self.taken, self._counts()
        counts = {name: int(self.taken[name].sum() - before[name].sum()) for name in _COUNTS}
        due_before, self._due[buffer] = self._due[buffer], int(self.taken["due"][:, buffer].sum())
        return counts | {"due": self._due[buffer] - due_before}

    def _counts(self) -> npt.NDArray[np.void]:
        """LOCK_COUNTS of each possible CPU since the start."""
        size = LOCK_COUNTS.itemsize * kernel.possible_cpu_count()
        return np.frombuffer(kernel.lookup(self._counts_map, _KEY_ZERO, size), LOCK_COUNTS)
