# SPDX-License-Identifier: Apache-2.0
"""CPU that a host had no say in: what quotas of cgroups kept from services, and what the hypervisor took (steal), as columns of `time`.

Steal is known of the host alone. It strikes what runs, so each process gets the part of it that its time on CPUs is of all busy time.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.process.throttling import Throttling
from agent.records.event_drain import EventColumn, EventDrain, WindowDrain
from agent.records.process import ProcessKey
from emberwatch.v1 import batch_pb2 as pb

U64 = npt.NDArray[np.uint64]

_TIME_KIND = "time"
_BUSY = (0, 1, 2, 5, 6, 7)
"""Of the numbers behind `cpu` in proc_stat(5): user, nice, system, irq, softirq, steal."""
_STEAL = 7


@dataclass(frozen=True, slots=True)
class _Ticks:
    busy: int
    steal: int


class WithheldCpu:
    """Adds to each window what was withheld since the last one; the first has nothing to compare with."""

    def __init__(self, throttling: Throttling, stat: Path = Path("/proc/stat")) -> None:
        self._throttling = throttling
        self._stat = stat
        self._before = _ticks(stat)

    def add(self, drain: WindowDrain) -> WindowDrain:
        """Give `time` the columns throttled_ns and steal_ns."""
        share = self._stolen_share()
        return replace(drain, events=[self._with_columns(one, share) if one.kind == _TIME_KIND else one for one in drain.events])

    def _with_columns(self, drain: EventDrain, stolen_share: float) -> EventDrain:
        values = {column.name: column.values for column in drain.columns}
        runnable_ns = np.where(drain.keys["is_kernel_thread"] != 0, np.uint64(0), values["runnable_ns"])
        fields = (drain.keys[name].tolist() for name in ("pid", "start_boot_ns", "exec_id"))
        throttled_ns = self._throttling.since_last([ProcessKey(*parts) for parts in zip(*fields, strict=True)], runnable_ns)
        steal_ns = (values["cpu_ns"] * stolen_share).astype(np.uint64)
        added = (("throttled_ns", throttled_ns), ("steal_ns", steal_ns))
        return replace(drain, columns=(*drain.columns, *(EventColumn(name, "ns", pb.MERGE_SUM, of_rows) for name, of_rows in added)))

    def _stolen_share(self) -> float:
        """Part of the busy time since the last call that was stolen."""
        before, now = self._before, _ticks(self._stat)
        self._before = now
        if before is None or now is None or now.busy <= before.busy:
            return 0.0
        return min(1.0, max(0, now.steal - before.steal) / (now.busy - before.busy))


def _ticks(stat: Path) -> _Ticks | None:
    """None where the file cannot be read."""
    try:
        with stat.open("rb") as file:
            words = file.readline().split()
        numbers = [int(word) for word in words[1:]]
        return _Ticks(sum(numbers[place] for place in _BUSY), numbers[_STEAL])
    except (OSError, ValueError, IndexError):
        return None
