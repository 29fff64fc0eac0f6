# SPDX-License-Identifier: Apache-2.0
"""Rows of waits for locks as the BPF programs write them (bpf/shared/lock_rows.h), and what a lock is called.

A lock is an object: its kind and what is known of it.

    mutex 0x7f32a81c30       of user space, by its address (the same in all threads of a process)
    PI mutex 0x7f32a81c30    the same, one that hands on priority
    rwsem write mmap_lock    of the process, known by where it lies
    mutex cgroup_mutex       static, where the kernel keeps names of its data
    mutex in do_unlinkat     any other: by the function that asked for it
    spinlock                 when that is not known either
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import numpy.typing as npt

from agent.records.drain import CPU_KEY
from agent.records.event_drain import BUCKETS

Rows = npt.NDArray[np.void]
U64 = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

LOCK_KEY = np.dtype([("own", CPU_KEY), ("holder", CPU_KEY), ("lock", "<u8"), ("type", "<u4"), ("padding", "<u4")])
LOCK_VALUE = np.dtype([("count", "<u8"), ("ns", "<u8"), ("max_ns", "<u8"), ("buckets", "<u4", (BUCKETS,))])
OTHER_LOCKS = b"other"
"""In place of the address, of locks of user space beyond the most a window may have."""
_DIGITS = re.compile(rb"[0-9]+")


@dataclass(frozen=True, slots=True)
class Texts:
    """A text for each row: texts[of_row]."""

    texts: Sequence[bytes]
    of_row: Index


class LockType(IntFlag):
    """LCB_F_* of include/trace/events/lock.h, and LOCK_* of bpf/shared/lock_rows.h."""

    SPIN = 1 << 0
    READ = 1 << 1
    WRITE = 1 << 2
    RT = 1 << 3
    PERCPU = 1 << 4
    MUTEX = 1 << 5
    USER = 1 << 16
    PRIORITY = 1 << 17
    MMAP = 1 << 18
    SIGNAL = 1 << 19


_SIDES = {LockType.READ: b" read", LockType.WRITE: b" write"}
_KINDS: tuple[tuple[LockType, bytes], ...] = (
    (LockType.MUTEX, b"mutex"),
    (LockType.PERCPU, b"percpu rwsem"),
    (LockType.RT, b"rtmutex"),
)
"""The first that matches; a lock with sides is a rwlock when it spins, else a rwsem."""


def kind_of_lock(lock_type: int) -> bytes:
    """The kind in words, without a name."""
    flags = LockType(lock_type)
    if LockType.USER in flags:
        return b"PI mutex" if LockType.PRIORITY in flags else b"mutex"
    side = next((word for bit, word in _SIDES.items() if bit in flags), b"")
    for bit, word in _KINDS:
        if bit in flags:
            return word + side
    if side:
        return (b"rwlock" if LockType.SPIN in flags else b"rwsem") + side
    return b"spinlock" if LockType.SPIN in flags else b"semaphore"


def name_of_lock(lock_type: int, address: int, symbol: bytes, caller: bytes) -> bytes:
    """The object of a row. `symbol` is that of a static lock, `caller` the function that asked for it; both may be empty."""
    flags, kind = LockType(lock_type), kind_of_lock(lock_type)
    if LockType.USER in flags:
        return kind + (b" 0x%x" % address if address else b" " + OTHER_LOCKS)
    if LockType.MMAP in flags:
        return kind + b" mmap_lock"
    if LockType.SIGNAL in flags:
        return kind + b" siglock"
    if symbol:
        return kind + b" " + symbol
    return kind + b" in " + caller if caller else kind


def most_waited(keys: Rows, waited_ns: npt.NDArray[np.uint64], most: int) -> npt.NDArray[np.uint64]:
    """The addresses of rows, 0 for locks of user space that are not among the `most` a process waited for longest."""
    locks = keys["lock"].copy()
    is_user = keys["type"] & LockType.USER != 0
    pairs = np.stack((keys["own"]["pid"].astype(np.uint64), locks), axis=1)[is_user]
    if not len(pairs):
        return locks
    distinct, pair_of_row = np.unique(pairs, axis=0, return_inverse=True)
    sums = np.bincount(pair_of_row.ravel(), waited_ns[is_user].astype(np.float64), len(distinct))
    order = np.lexsort((-sums, distinct[:, 0]))
    pids = distinct[order, 0]
    rank = np.arange(len(order)) - np.searchsorted(pids, pids)
    is_kept = np.zeros(len(distinct), np.bool_)
    is_kept[order[rank < most]] = True
    locks[is_user] = np.where(is_kept[pair_of_row.ravel()], locks[is_user], 0)
    return locks


def named_objects(types: npt.NDArray[np.uint32], locks: U64, symbols: Texts, callers: Texts) -> tuple[list[bytes], Index]:
    """Objects (entry 0 none) and the object of each row. All four have one element a row; distinct ones are named once."""
    table = np.stack([types.astype(np.uint64), locks, symbols.of_row.astype(np.uint64), callers.of_row.astype(np.uint64)], axis=1)
    distinct, row = np.unique(table, axis=0, return_inverse=True)
    names = [
        name_of_lock(lock_type, address, symbols.texts[symbol], callers.texts[caller])
        for lock_type, address, symbol, caller in distinct.tolist()
    ]
    return [b"", *names], row.ravel().astype(np.int64) + 1


def holder_names(holders: Rows) -> tuple[list[bytes], Index]:
    """Thread names of holders (entry 0 nobody), numbers in them as N, and the one of each row."""
    distinct, of_row = np.unique(holders["comm"], return_inverse=True)
    names = [_DIGITS.sub(b"N", bytes(name)) for name in distinct.tolist()]
    return [b"", *names], np.where(holders["comm"] == b"", 0, of_row.ravel() + 1)
