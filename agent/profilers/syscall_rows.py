# SPDX-License-Identifier: Apache-2.0
"""Turns the sums of system calls, as the kernel's maps hold them, into rows by process and call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.profilers.call_budget import CallShares
from agent.profilers.syscall_names import object_name
from agent.records.event_drain import BUCKETS, EventColumn, event_keys, histogram_columns
from emberwatch.v1 import batch_pb2 as pb

CACHE_SLOTS = 128
CALL_KEY = np.dtype([("start_boot_ns", "<u8"), ("pid", "<u4"), ("exec_id", "<u4"), ("call", "<u4"), ("cpu", "<u4")])
"""struct call_key in bpf/syscall.bpf.c."""
CALL_SUMS = np.dtype([("count", "<u8"), ("ns", "<u8"), ("max_ns", "<u8"), ("unmeasured", "<u8"), ("buckets", "<u4", (BUCKETS,))])
"""struct call_sums there."""
CALL_SLOT = np.dtype([("key", CALL_KEY), ("sums", CALL_SUMS)])
"""struct call_slot there."""
CALL_CACHE = np.dtype([("slots", CALL_SLOT, (CACHE_SLOTS,))])
"""struct call_cache there: one CPU and buffer."""
CALL_COUNTS = np.dtype(
    [(name, "<u8") for name in ("seen", "filtered", "map_full", "map_busy", "seen_full", "stacks_taken", "stacks_lost", "starts_full")]
)
"""struct call_counts there: one CPU and buffer."""

_WIDE_SUMS = np.dtype([("count", "<u8"), ("ns", "<u8"), ("max_ns", "<u8"), ("unmeasured", "<u8"), ("buckets", "<u8", (BUCKETS,))])
_IDENTITY = ("start_boot_ns", "pid", "exec_id", "call")


@dataclass(frozen=True, slots=True)
class CallRows:
    """Rows of one window, no two of one process and call."""

    keys: npt.NDArray[np.void]
    """dtype CPU_KEY, without stacks and thread names."""
    columns: tuple[EventColumn, ...]
    objects: Sequence[bytes]
    object_of_row: npt.NDArray[np.int64]


def rows_of_calls(
    caches: npt.NDArray[Any],
    spilled: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    shares: CallShares,
) -> CallRows:
    """Add up what the CPUs counted (`caches` has one CALL_CACHE each) and what did not stay there (keys, CALL_SUMS).

    Calls are scaled to the whole window by the part of it in which they were counted. Where not all were timed, the times of those that
    were stand for all of their process, call and error. `observed` is not scaled: calls whose time was taken. Those under way when the
    programs were attached are counted, their time is not known.
    """
    slots = caches["slots"].ravel()
    used = slots[slots["sums"]["count"] > 0]
    pieces = list(spilled)
    keys = np.concatenate([used["key"], *(piece[0] for piece in pieces)])
    sums = np.concatenate([used["sums"], *(piece[1] for piece in pieces)])
    order = np.lexsort([keys[name] for name in _IDENTITY])
    return _columns(*_added(keys[order], sums[order]), shares)


def _added(keys: npt.NDArray[Any], sums: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """One row for each run of alike keys."""
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = np.any([keys[name][1:] != keys[name][:-1] for name in _IDENTITY], axis=0)
    starts = np.flatnonzero(is_first)
    added = np.zeros(len(starts), _WIDE_SUMS)
    if len(starts):
        for name in ("count", "ns", "unmeasured", "buckets"):
            added[name] = np.add.reduceat(sums[name].astype(np.uint64), starts)
        added["max_ns"] = np.maximum.reduceat(sums["max_ns"], starts)
    return keys[starts], added


def _columns(keys: npt.NDArray[Any], sums: npt.NDArray[Any], shares: CallShares) -> CallRows:
    rows = event_keys(len(keys))
    for name in ("start_boot_ns", "pid", "exec_id"):
        rows[name] = keys[name]
    calls, call_of_row = np.unique(keys["call"], return_inverse=True)
    counts = shares.counted.scaled(sums["count"])
    observed = sums["count"] - sums["unmeasured"]
    ns, buckets = sums["ns"], sums["buckets"]
    if not shares.timed.is_whole:
        stands_for = counts / np.maximum(observed, 1)
        ns, buckets = (np.rint(ns * stands_for).astype(np.uint64), np.rint(buckets * stands_for[:, None]).astype(np.uint64))
    columns = (
        EventColumn("count", "count", pb.MERGE_SUM, counts),
        EventColumn("ns", "ns", pb.MERGE_SUM, ns),
        EventColumn("max_ns", "ns", pb.MERGE_MAX, sums["max_ns"]),
        EventColumn("observed", "count", pb.MERGE_SUM, observed),
        *(column for column in histogram_columns(buckets) if column.values.any()),
    )
    return CallRows(rows, columns, (b"", *map(object_name, calls.tolist())), call_of_row + 1)
