# SPDX-License-Identifier: Apache-2.0
"""Turns the stacks of connect, as the kernel's maps hold them, into rows of kind tcp_stack: who connects to whom, and from where."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.profilers.syscall_rows import CallRows
from agent.profilers.tcp_rows import TCP_KEY, named_ends
from agent.records.event_drain import EventColumn, event_keys
from emberwatch.v1 import batch_pb2 as pb

CONNECT_KEY = np.dtype([("end", TCP_KEY), ("user_stack", "<u8"), ("user_error", "<i2"), ("padding", "<u2"), ("padding_too", "<u4")])
"""struct connect_key in bpf/shared/tcp_connects.h."""
CONNECT_SUMS = np.dtype([("count", "<u8"), ("observed", "<u8")])
"""struct connect_sums there."""


def rows_of_connects(pieces: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> CallRows:
    """One row for each (key, sums) of `pieces`."""
    found = list(pieces)
    keys = np.concatenate([np.empty(0, CONNECT_KEY), *(piece[0] for piece in found)])
    sums = np.concatenate([np.empty(0, CONNECT_SUMS), *(piece[1] for piece in found)])
    rows = event_keys(len(keys))
    for name in ("start_boot_ns", "pid", "exec_id", "is_kernel_thread"):
        rows[name] = keys["end"][name]
    for name in ("user_stack", "user_error"):
        rows[name] = keys[name]
    columns = tuple(EventColumn(name, "count", pb.MERGE_SUM, sums[name]) for name in ("count", "observed"))
    objects, object_of_row = named_ends(keys["end"])
    return CallRows(rows, columns, objects, object_of_row)
