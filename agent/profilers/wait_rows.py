# SPDX-License-Identifier: Apache-2.0
"""Long waits as the BPF program writes them (bpf/shared/wait_rows.h), those that are still open, and the columns made of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import Share
from agent.profilers.thread_rows import CLASSES, U64, WAIT_STACK, Moment, Rows, ThreadState
from agent.profilers.thread_times import ThreadWindow
from agent.profilers.wait_classes import NAMES
from agent.records.event_drain import BUCKETS, EventColumn, event_keys, histogram_columns
from emberwatch.v1 import batch_pb2 as pb

WAIT_KEY = np.dtype(
    [("own", WAIT_STACK), ("comm", "S16"), ("waker", WAIT_STACK), ("kind", "<u4"), ("wait_class", "<u2"), ("bucket", "<u2")]
)
WAIT_VALUE = np.dtype([("observed", "<u8"), ("count_parts", "<u8"), ("ns", "<u8"), ("max_ns", "<u8"), ("uninterruptible_ns", "<u8")])
COUNT_PARTS = 256
"""PARTS in bpf/shared/sampling.h."""
CLASS_TEXTS: Sequence[bytes] = (b"", *NAMES)
"""Of an EventDrain: class i stands at i + 1."""
_FROM_STACK = ("start_boot_ns", "user_stack", "kernel_stack", "pid", "exec_id", "user_error", "kernel_error", "is_kernel_thread")


class WaitKind(IntEnum):
    """enum wait_kind in bpf/shared/wait_rows.h."""

    OFFCPU = 0
    RUNQUEUE = 1


@dataclass(frozen=True, slots=True)
class WaitRows:
    """Rows of waits over the threshold, of both kinds."""

    keys: Rows
    """dtype WAIT_KEY."""
    values: Rows
    """dtype WAIT_VALUE."""

    def of_kind(self, kind: WaitKind) -> "WaitRows":
        """The rows of one kind."""
        is_of_kind = self.keys["kind"] == kind
        return WaitRows(self.keys[is_of_kind], self.values[is_of_kind])


def joined_rows(parts: Sequence[WaitRows]) -> WaitRows:
    """All rows."""
    keys = np.concatenate([np.zeros(0, WAIT_KEY), *(part.keys for part in parts)])
    return WaitRows(keys, np.concatenate([np.zeros(0, WAIT_VALUE), *(part.values for part in parts)]))


@dataclass(frozen=True, slots=True)
class Reports:
    """Which waits that are open are told of, and from when on."""

    threshold_ns: int
    before_ns: int
    """Until when they were told of already, if they were long enough then."""


def open_rows(threads: Rows, moment: Moment, reports: Reports) -> WaitRows:
    """A row for each wait over the threshold that was open at the moment, with the part that was not told of before.

    It counts once in every window that it reaches into. The stack is there when the wait's own stack was taken.
    """
    now = np.uint64(moment.now_ns)
    # Ended between the moment and the read of its entry: the kernel takes it for told up to the moment (end_wait in bpf/waits.bpf.c).
    has_crossed = threads["crossed_at_ns"] == now
    began = np.where(has_crossed, threads["crossed_since_ns"], threads["since_ns"])
    since = np.minimum(np.maximum(began, np.uint64(moment.on_since_ns)), now)
    whole = now - since
    is_open = (threads["state"] == ThreadState.BLOCKED) | has_crossed
    is_long = is_open & (whole >= np.uint64(reports.threshold_ns)) & (whole > 0)
    threads, began, since, whole, has_crossed = (values[is_long] for values in (threads, began, since, whole, has_crossed))
    before = np.uint64(reports.before_ns)
    was_told = (before > since) & (before - np.minimum(since, before) >= np.uint64(reports.threshold_ns))
    keys, values = np.zeros(len(threads), WAIT_KEY), np.zeros(len(threads), WAIT_VALUE)
    has_stack = threads["stack_since_ns"] == began
    keys["own"][has_stack] = threads["own"][has_stack]
    for name in ("start_boot_ns", "pid", "exec_id", "is_kernel_thread"):
        keys["own"][name] = threads[name]
    keys["comm"] = threads["comm"]
    keys["kind"] = WaitKind.OFFCPU
    keys["wait_class"] = np.where(has_crossed, threads["crossed_class"], threads["wait_class"])
    is_uninterruptible = np.where(has_crossed, threads["crossed_uninterruptible"], threads["is_uninterruptible"])
    values["observed"] = 1
    values["count_parts"] = COUNT_PARTS
    values["ns"] = np.where(was_told, now - np.maximum(since, before), whole)
    values["max_ns"] = whole
    values["uninterruptible_ns"] = np.where(is_uninterruptible != 0, values["ns"], 0)
    return WaitRows(keys, values)


def cpu_keys(stacks: Rows, comms: npt.NDArray[np.bytes_] | None) -> Rows:
    """CPU_KEY of WAIT_STACKs; None for no thread names."""
    keys = event_keys(len(stacks))
    for name in _FROM_STACK:
        keys[name] = stacks[name]
    if comms is not None:
        keys["comm"] = comms
    return keys


def class_numbers(rows: WaitRows) -> npt.NDArray[np.int64]:
    """Places in CLASS_TEXTS."""
    return np.asarray(np.minimum(rows.keys["wait_class"], CLASSES - 1).astype(np.int64) + 1)


def counts_of(values: Rows) -> U64:
    """How many waits the rows stand for."""
    return np.asarray((values["count_parts"] + np.uint64(COUNT_PARTS // 2)) // np.uint64(COUNT_PARTS))


def offcpu_columns(rows: WaitRows, share: Share) -> tuple[EventColumn, ...]:
    """Columns of kind offcpu."""
    values = rows.values
    return (
        EventColumn("count", "count", pb.MERGE_SUM, share.scaled(counts_of(values))),
        EventColumn("ns", "ns", pb.MERGE_SUM, share.scaled(values["ns"])),
        EventColumn("max_ns", "ns", pb.MERGE_MAX, values["max_ns"].copy()),
        EventColumn("observed", "count", pb.MERGE_SUM, values["observed"].copy()),
        EventColumn("uninterruptible_ns", "ns", pb.MERGE_SUM, share.scaled(values["uninterruptible_ns"])),
    )


def runqueue_keys(rows: WaitRows, short: ThreadWindow) -> Rows:
    """Rows with stacks, then a row a thread for what stayed below the threshold."""
    keys = event_keys(len(short.who))
    for name in short.who.dtype.names or ():
        keys[name] = short.who[name]
    return np.concatenate((cpu_keys(rows.keys["own"], rows.keys["comm"]), keys))


def runqueue_columns(rows: WaitRows, short: tuple[U64, U64, U64], share: Share) -> tuple[EventColumn, ...]:
    """Columns of kind runqueue; `short` are ns, longest and buckets (rows, BUCKETS) of the rows below the threshold."""
    short_ns, short_max_ns, short_buckets = short
    buckets = np.zeros((len(rows.keys), BUCKETS), np.uint64)
    buckets[np.arange(len(rows.keys)), np.minimum(rows.keys["bucket"], BUCKETS - 1)] = counts_of(rows.values)
    observed = np.concatenate((rows.values["observed"], short_buckets.sum(axis=1)))
    buckets = share.scaled(np.concatenate((buckets, short_buckets)))
    return (
        EventColumn("count", "count", pb.MERGE_SUM, buckets.sum(axis=1)),
        EventColumn("ns", "ns", pb.MERGE_SUM, share.scaled(np.concatenate((rows.values["ns"], short_ns)))),
        EventColumn("max_ns", "ns", pb.MERGE_MAX, np.concatenate((rows.values["max_ns"], short_max_ns))),
        EventColumn("observed", "count", pb.MERGE_SUM, observed),
        *histogram_columns(buckets),
    )
