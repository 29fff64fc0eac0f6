# SPDX-License-Identifier: Apache-2.0
"""Entries of the BPF map of threads, made by hand."""

from typing import Any

import numpy as np

from agent.profilers.thread_rows import THREAD, Rows, ThreadState


def thread(pid: int, state: ThreadState, since_ns: int, **fields: Any) -> Rows:
    """One entry; `fields` are those of THREAD, and of its sums."""
    entry = np.zeros(1, THREAD)
    entry["pid"], entry["start_boot_ns"], entry["exec_id"] = pid, 1000 + pid, 1
    entry["comm"] = b"main"
    entry["state"], entry["since_ns"] = state, since_ns
    for name, value in fields.items():
        if name in (THREAD.names or ()):
            entry[name] = value
        else:
            entry["sums"][name] = value
    return entry
