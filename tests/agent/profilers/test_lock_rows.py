# SPDX-License-Identifier: Apache-2.0
"""What locks are called, and which addresses stay."""

import numpy as np
import pytest

from agent.profilers.lock_rows import LOCK_KEY, LOCK_VALUE, LockType, Texts, holder_names, most_waited, name_of_lock, named_objects
from agent.records.drain import CPU_KEY


def test_rows_are_as_the_kernel_writes_them() -> None:
    assert (LOCK_KEY.itemsize, LOCK_VALUE.itemsize) == (128, 152)


@pytest.mark.parametrize(
    ("lock_type", "known", "name"),
    [
        (LockType.MUTEX | LockType.SPIN, (0, b"", b"do_unlinkat"), b"mutex in do_unlinkat"),
        (LockType.MUTEX, (0xFFFF1, b"cgroup_mutex", b"cgroup_attach"), b"mutex cgroup_mutex"),
        (LockType.WRITE | LockType.MMAP, (0, b"", b"vm_mmap"), b"rwsem write mmap_lock"),
        (LockType.READ, (0, b"", b""), b"rwsem read"),
        (LockType.SPIN | LockType.READ, (0, b"", b"f"), b"rwlock read in f"),
        (LockType.SPIN | LockType.SIGNAL, (0, b"", b""), b"spinlock siglock"),
        (LockType.SPIN, (0, b"", b""), b"spinlock"),
        (LockType.RT, (0, b"", b""), b"rtmutex"),
        (LockType.PERCPU | LockType.WRITE, (0, b"", b""), b"percpu rwsem write"),
        (0, (0, b"", b"xfs_buf_lock"), b"semaphore in xfs_buf_lock"),
        (LockType.USER, (0x7F10, b"", b""), b"mutex 0x7f10"),
        (LockType.USER | LockType.PRIORITY, (0x7F10, b"", b""), b"PI mutex 0x7f10"),
        (LockType.USER, (0, b"", b""), b"mutex other"),
    ],
)
def test_a_lock_is_called_by_what_is_known_of_it(lock_type: int, known: tuple[int, bytes, bytes], name: bytes) -> None:
    assert name_of_lock(lock_type, *known) == name


def test_objects_are_named_once_each() -> None:
    types = np.array([LockType.USER, LockType.MUTEX, LockType.USER], np.uint32)
    locks = np.array([0x10, 0, 0x10], np.uint64)
    callers = Texts([b"f", b""], np.array([1, 0, 1]))
    objects, of_row = named_objects(types, locks, Texts([b""], np.zeros(3, np.int64)), callers)
    assert [objects[at] for at in of_row] == [b"mutex 0x10", b"mutex in f", b"mutex 0x10"]
    assert len(objects) == 3


def test_no_rows_name_nothing() -> None:
    none = Texts([], np.zeros(0, np.int64))
    objects, of_row = named_objects(np.zeros(0, np.uint32), np.zeros(0, np.uint64), none, none)
    assert (objects, of_row.tolist()) == ([b""], [])


def test_only_the_longest_waited_for_keep_their_address() -> None:
    keys = np.zeros(5, LOCK_KEY)
    keys["own"]["pid"] = [7, 7, 7, 23, 7]
    keys["lock"] = [1, 2, 3, 4, 5]
    keys["type"] = [LockType.USER] * 4 + [LockType.MUTEX]
    kept = most_waited(keys, np.array([10, 30, 20, 1, 1], np.uint64), most=2)
    assert kept.tolist() == [0, 2, 3, 4, 5]  # process 23 has one lock only; a kernel lock is not of a process


def test_holders_are_named_by_the_form_of_their_thread_names() -> None:
    holders = np.zeros(4, CPU_KEY)
    holders["comm"] = [b"worker-7", b"", b"main", b"worker-23"]
    names, of_row = holder_names(holders)
    assert [names[at] for at in of_row] == [b"worker-N", b"", b"main", b"worker-N"]
