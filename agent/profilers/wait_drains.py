# SPDX-License-Identifier: Apache-2.0
"""Makes the drains of offcpu, runqueue and time of what was read of threads and of long waits in a window."""

from dataclasses import dataclass

import numpy as np

from agent.profilers.breaker import Share
from agent.profilers.event_host import ClosedWindow
from agent.profilers.thread_rows import CPU, FIRST_BUCKET, FIRST_CLASS, RUNNABLE, SHORT_RUNNABLE, SWITCHES, U64
from agent.profilers.thread_times import ThreadWindow
from agent.profilers.wait_classes import WaitClass
from agent.profilers.wait_rows import (
    CLASS_TEXTS,
    WaitKind,
    WaitRows,
    class_numbers,
    cpu_keys,
    offcpu_columns,
    runqueue_columns,
    runqueue_keys,
)
from agent.records.drain import Stacks
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, event_keys
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2 as marks

_TIME_COLUMNS = (
    ("cpu_ns", CPU),
    ("runnable_ns", RUNNABLE),
    *((f"{one.name.lower()}_ns", FIRST_CLASS + one) for one in WaitClass),
)


@dataclass(frozen=True, slots=True)
class WaitLosses:
    """What a window lost, in events."""

    threads_full: int = 0
    departed_full: int = 0
    offcpu_full: int = 0
    offcpu_busy: int = 0
    runqueue_full: int = 0
    runqueue_busy: int = 0
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class WaitWindow:
    """All that is known of a window."""

    closed: ClosedWindow
    share: Share
    rows: WaitRows
    threads: ThreadWindow
    stacks: Stacks
    losses: WaitLosses


def offcpu_drain(window: WaitWindow) -> EventDrain:
    """Waits over the threshold, by stack, class and waker."""
    rows = window.rows.of_kind(WaitKind.OFFCPU)
    columns = offcpu_columns(rows, window.share)
    return EventDrain(
        kind="offcpu",
        start_ns=window.closed.start_ns,
        end_ns=window.closed.end_ns,
        keys=cpu_keys(rows.keys["own"], rows.keys["comm"]),
        columns=columns,
        account=_account(columns[0], window.losses.offcpu_full, window.losses.offcpu_busy, window.losses.unseen),
        stacks=window.stacks,
        seconds=cpu_keys(rows.keys["waker"], None),
        classes=CLASS_TEXTS,
        class_of_row=class_numbers(rows),
    )


def runqueue_drain(window: WaitWindow) -> EventDrain:
    """Waits for a CPU: with stacks over the threshold, by thread name below."""
    rows = window.rows.of_kind(WaitKind.RUNQUEUE)
    sums = window.threads.sums
    short = (sums[:, SHORT_RUNNABLE], window.threads.short_max_ns, sums[:, FIRST_BUCKET:])
    columns = runqueue_columns(rows, short, window.share)
    keys = runqueue_keys(rows, window.threads)
    is_used = columns[0].values > 0
    columns = tuple(EventColumn(one.name, one.unit, one.merge, one.values[is_used]) for one in columns)
    account = _account(columns[0], window.losses.departed_full + window.losses.runqueue_full, window.losses.runqueue_busy)
    return EventDrain("runqueue", window.closed.start_ns, window.closed.end_ns, keys[is_used], columns, account, window.stacks)


def time_drain(window: WaitWindow) -> EventDrain:
    """Exact sums of each process: no stacks, no threshold."""
    threads = window.threads
    order = np.lexsort(tuple(threads.who[name] for name in ("exec_id", "start_boot_ns", "pid")))
    who = threads.who[order]
    is_first = np.ones(len(who), np.bool_)
    is_first[1:] = np.logical_or.reduce([who[name][1:] != who[name][:-1] for name in ("pid", "start_boot_ns", "exec_id")])
    firsts = np.flatnonzero(is_first)
    keys = event_keys(len(firsts))
    for name in ("start_boot_ns", "pid", "exec_id", "is_kernel_thread"):
        keys[name] = who[name][firsts]
    observed = _summed(threads.sums[order], firsts)
    sums = window.share.scaled(observed)
    columns = (
        EventColumn("switches", "count", pb.MERGE_SUM, sums[:, SWITCHES]),
        *(EventColumn(name, "ns", pb.MERGE_SUM, sums[:, place]) for name, place in _TIME_COLUMNS),
        EventColumn("threads", "count", pb.MERGE_MAX, _summed(threads.threads[order], firsts)),
        EventColumn("observed", "count", pb.MERGE_SUM, observed[:, SWITCHES]),
    )
    account = _account(columns[0], window.losses.threads_full + window.losses.departed_full)
    return EventDrain("time", window.closed.start_ns, window.closed.end_ns, keys, columns, account)


def _summed(values: U64, firsts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> U64:
    return np.asarray(np.add.reduceat(values, firsts)) if len(firsts) else values[:0]


def _account(first: EventColumn, full: int, busy: int = 0, unpaired: int = 0) -> EventAccount:
    lost = {marks.LOSS_REASON_MAP_FULL: full, marks.LOSS_REASON_MAP_BUSY: busy, marks.LOSS_REASON_UNPAIRED: unpaired}
    return EventAccount(int(first.values.sum()) + sum(lost.values()), 0, {reason: value for reason, value in lost.items() if value})
