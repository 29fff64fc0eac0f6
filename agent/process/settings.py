# SPDX-License-Identifier: Apache-2.0
"""Bounds of what the agent keeps of processes and of the work it does for them."""

import os
from dataclasses import dataclass
from pathlib import Path

LEAST_KEPT, MOST_KEPT = 2048, 16_384


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The defaults hold the agent inside its budget on a host of some hundred processes; a flood is counted, not followed."""

    new_per_s: int = 25
    """First sights a second in the long run; a first sight costs 0.2 to 1 ms."""
    new_burst: int = 1000
    """First sights at once, as at the start of the agent."""
    processes_max: int = LEAST_KEPT
    """Processes kept; about 5 KB each. Those beyond are read anew in each window, or stand as [unread]."""
    binaries_max: int = 4096
    """Identities of files kept; about 1 KB each."""
    open_max: int = 256
    """Descriptors of binaries kept for upload."""
    reread_s: float = 60.0
    """Mappings are read again at this age even when nothing tells that they changed."""
    perf_map_file_bytes: int = 32 << 20
    """Most that is read of one perf map."""
    perf_map_lines: int = 1_000_000
    perf_map_total_bytes: int = 64 << 20
    """Most memory of all perf maps together: beyond, the user who holds the most gives up the largest."""
    perf_map_cpu_share: float = 0.002
    """Most of one CPU that the perf map of one process may take; a map that costs 20 ms is read every 10 s at most."""
    perf_map_cpu_share_total: float = 0.01
    """The same for all together, in the long run."""
    perf_map_cpu_burst_s: float = 3.0
    """CPU seconds that reading perf maps may take at once, as at the start of the agent."""


def process_count(proc_root: Path = Path("/proc")) -> int:
    """Processes there are now."""
    with os.scandir(proc_root) as entries:
        return sum(entry.name.isdigit() for entry in entries)


def settings_for(processes: int) -> ProcessSettings:
    """Those of a host that runs so many processes: there is room for twice as many."""
    return ProcessSettings(processes_max=min(max(2 * processes, LEAST_KEPT), MOST_KEPT))
