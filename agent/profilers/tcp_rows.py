# SPDX-License-Identifier: Apache-2.0
"""Turns the sums of TCP endpoints, as the kernel's maps hold them, into rows by process and endpoint."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.profilers.syscall_rows import CallRows
from agent.records.event_drain import BUCKETS, EventColumn, event_keys, histogram_columns
from emberwatch.v1 import batch_pb2 as pb

OTHER_PEERS = b"out other"
"""Endpoints that are put together for want of room."""
_OUT = 1
_END = np.dtype([("address", "V16"), ("port", "<u2"), ("direction", "u1")])
_SUMS = (
    ("events", "count"),
    ("connects", "count"),
    ("accepts", "count"),
    ("refused", "count"),
    ("timeouts", "count"),
    ("failed", "count"),
    ("resets", "count"),
    ("closes", "count"),
    ("bytes_out", "bytes"),
    ("bytes_in", "bytes"),
    ("segments_out", "count"),
    ("segments_in", "count"),
    ("retransmits", "count"),
    ("syn_retransmits", "count"),
    ("connect_ns", "ns"),
    ("lifetime_ns", "ns"),
    ("rtt_ns", "ns"),
    ("rtts", "count"),
    ("drops", "count"),
    ("listen_drops", "count"),
    ("observed", "count"),
)
_MAXIMA = (("rtt_max_ns", "ns"), ("backlog_max", "count"))
COLUMNS = tuple((name, unit, pb.MERGE_SUM) for name, unit in _SUMS) + tuple((name, unit, pb.MERGE_MAX) for name, unit in _MAXIMA)
"""enum tcp_column in bpf/shared/tcp_records.h: (name, unit, merge)."""
TCP_KEY = np.dtype(
    [
        ("start_boot_ns", "<u8"),
        ("address", "V16"),
        ("pid", "<u4"),
        ("exec_id", "<u4"),
        ("port", "<u2"),
        ("direction", "u1"),
        ("is_kernel_thread", "u1"),
        ("padding", "<u4"),
    ]
)
"""struct tcp_key there; IPv4 addresses are mapped into IPv6."""
TCP_SUMS = np.dtype([("values", "<u8", (len(COLUMNS),)), ("rtts", "<u4", (BUCKETS,)), ("connects", "<u4", (BUCKETS,))])
"""struct tcp_sums there."""


def rows_of_endpoints(pieces: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> CallRows:
    """One row for each (key, sums) of `pieces`."""
    found = list(pieces)
    keys = np.concatenate([np.empty(0, TCP_KEY), *(piece[0] for piece in found)])
    sums = np.concatenate([np.empty(0, TCP_SUMS), *(piece[1] for piece in found)])
    rows = event_keys(len(keys))
    for name in ("start_boot_ns", "pid", "exec_id", "is_kernel_thread"):
        rows[name] = keys[name]
    columns = tuple(EventColumn(name, unit, merge, sums["values"][:, at]) for at, (name, unit, merge) in enumerate(COLUMNS))
    histograms = (*histogram_columns(sums["rtts"], "rtt"), *histogram_columns(sums["connects"], "connect"))
    objects, object_of_row = named_ends(keys)
    return CallRows(rows, (*columns, *(column for column in histograms if column.values.any())), objects, object_of_row)


def named_ends(keys: npt.NDArray[np.void]) -> tuple[tuple[bytes, ...], npt.NDArray[np.int64]]:
    """Names of the distinct endpoints, and which one each key is of."""
    ends = np.zeros(len(keys), _END)
    for name in ("address", "port", "direction"):
        ends[name] = keys[name]
    distinct, end_of_row = np.unique(ends.view(f"V{_END.itemsize}"), return_inverse=True)
    return (b"", *(endpoint_name(*end) for end in distinct.view(_END).tolist())), end_of_row + 1


@lru_cache(maxsize=4096)
def endpoint_name(address: bytes, port: int, direction: int) -> bytes:
    """`in :PORT` of what others connect to, `out ADDRESS:PORT` of what is connected to."""
    if direction != _OUT:
        return b"in :%d" % port
    if not port:
        return OTHER_PEERS
    wide = ipaddress.IPv6Address(address)
    text = str(wide.ipv4_mapped) if wide.ipv4_mapped else f"[{wide.compressed}]"
    return f"out {text}:{port}".encode()
