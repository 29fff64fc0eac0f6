# SPDX-License-Identifier: Apache-2.0
"""The kinds that agents send, with their columns: these names mean this, whoever sends them first.

A store takes kinds it does not know; without this list the first agent to name a kind would settle for all others what its columns are.
"""

from collections.abc import Iterable, Mapping

from server.store.protocol import ColumnInfo
from server.store.push import ValueMerge

_BUCKETS = 32


def _sums(unit: str, *names: str) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(name, unit, ValueMerge.SUM) for name in names)


def _largest(unit: str, *names: str) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(name, unit, ValueMerge.MAX) for name in names)


def _histogram(name: str) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(f"{name}_{bucket:02}", "count", ValueMerge.HISTOGRAM) for bucket in range(_BUCKETS))


_TIMED = (*_sums("count", "count"), *_sums("ns", "ns"), *_largest("ns", "max_ns"), *_sums("count", "observed"))
_WAITS = ("lock", "disk", "net", "pipe", "poll", "sleep", "page", "child", "other")
_ENDS = ("events", "connects", "accepts", "refused", "timeouts", "failed", "resets", "closes")

KNOWN: Mapping[str, tuple[ColumnInfo, ...]] = {
    "cpu": (*_sums("count", "samples"), *_sums("ns", "ns"), *_sums("count", "observed")),
    "offcpu": (*_TIMED, *_sums("ns", "uninterruptible_ns")),
    "runqueue": (*_TIMED, *_histogram("bucket")),
    "lock": (*_TIMED, *_histogram("bucket")),
    "lock_hold": (*_TIMED, *_histogram("bucket")),
    "syscall": (*_TIMED, *_histogram("bucket")),
    "syscall_stack": (*_sums("count", "count"), *_sums("ns", "ns"), *_sums("count", "observed")),
    "tcp": (
        *_sums("count", *_ENDS),
        *_sums("bytes", "bytes_out", "bytes_in"),
        *_sums("count", "segments_out", "segments_in", "retransmits", "syn_retransmits"),
        *_sums("ns", "connect_ns", "lifetime_ns", "rtt_ns"),
        *_sums("count", "rtts", "drops", "listen_drops", "observed"),
        *_largest("ns", "rtt_max_ns"),
        *_largest("count", "backlog_max"),
        *_histogram("rtt"),
        *_histogram("connect"),
    ),
    "tcp_stack": _sums("count", "count", "observed"),
    "time": (
        *_sums("count", "switches"),
        *_sums("ns", "cpu_ns", "runnable_ns", *(f"{wait}_ns" for wait in _WAITS), "throttled_ns", "steal_ns"),
        *_largest("count", "threads"),
        *_sums("count", "observed"),
    ),
}
"""The first column of each is the one accounts count in. An agent need not send all of them."""


def in_order(kind: str, columns: Iterable[ColumnInfo]) -> tuple[ColumnInfo, ...]:
    """The columns of a kind as they are to stand: known ones first, in their order and as they are known, whatever is said of them."""
    given = {column.name: column for column in columns}
    known = {column.name: column for column in KNOWN.get(kind, ()) if column.name in given}
    return (*known.values(), *(column for name, column in given.items() if name not in known))
