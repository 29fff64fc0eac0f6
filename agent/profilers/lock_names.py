# SPDX-License-Identifier: Apache-2.0
"""Which function asked for a kernel lock: the first of its stack that is not part of locking itself, or of the tracing of it."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from agent.profilers.lock_rows import Texts
from agent.records.drain import Stacks

FRAMES_LOOKED_AT = 16
_PARTS_OF_LOCKING = re.compile(
    rb"(?:_*bpf_|_*traceiter_|_*probestub_|_*contention_|_*(?:raw_)?(?:spin|read|write)_(?:un)?lock|do_raw_|_*queued_|_*native_queued_|_*pv_"
    rb"|_*mutex_|_*ww_mutex|_*rwsem_|_*(?:down|up)(?:_read|_write|_killable|_interruptible|_timeout|_trylock|_common|$)|downgrade_write|_*percpu_(?:down|up|rwsem)|_*percpu_rwsem|_*rt_mutex|_*rtlock|_*rwbase|osq_"
    rb"|_*semaphore|_*rt_(?:spin|read|write)|_*lock_mm_and_find_vma|_*mmap_(?:read|write)_lock|_*lock_sock|_*task_rq_lock|_*raw_spin_rq)"
)
Ask = Callable[[npt.NDArray[np.uint64]], Sequence[bytes]]
"""A name for each address; empty for 0 and for what is not known."""


@lru_cache(maxsize=2048)
def is_part_of_locking(name: bytes) -> bool:
    """Whether a function is how locks are taken, and not why."""
    return _PARTS_OF_LOCKING.match(name) is not None


class CallerNames:
    """Names of kernel addresses, one a row."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def symbols(self, addresses: npt.NDArray[np.uint64]) -> Texts:
        """Names of addresses, one a row; empty for 0 and for what is not known."""
        distinct, of_row = np.unique(addresses, return_inverse=True)
        return Texts(self._ask(distinct), of_row.ravel())

    def callers(self, hashes: npt.NDArray[np.uint64], stacks: Stacks) -> Texts:
        """For each kernel stack, by hash, one a row: who asked for the lock; empty when the stack or its names are not there."""
        distinct, of_row = np.unique(hashes, return_inverse=True)
        tops = _tops(distinct, stacks)
        addresses, number = np.unique(tops, return_inverse=True)
        names = self._ask(addresses)
        is_reason = np.array([bool(name) and not is_part_of_locking(name) for name in names], np.bool_)
        number = number.reshape(tops.shape)
        is_found = is_reason[number] if len(names) else np.zeros(tops.shape, np.bool_)
        first = np.argmax(is_found, axis=1)
        chosen = np.where(is_found.any(axis=1), number[np.arange(len(number)), first] + 1, 0)
        return Texts([b"", *names], chosen[of_row.ravel()])


def _tops(hashes: npt.NDArray[np.uint64], stacks: Stacks) -> npt.NDArray[np.uint64]:
    """Innermost frames of each stack, shape (hashes, FRAMES_LOOKED_AT), 0 where there is none."""
    tops = np.zeros((len(hashes), FRAMES_LOOKED_AT), np.uint64)
    if not len(stacks.hashes):
        return tops
    at = np.minimum(np.searchsorted(stacks.hashes, hashes), len(stacks.hashes) - 1)
    lengths = np.where(stacks.hashes[at] == hashes, np.diff(stacks.bounds)[at], 0)
    places = np.arange(FRAMES_LOOKED_AT)
    is_there = places < lengths[:, None]
    index = np.where(is_there, stacks.bounds[:-1][at][:, None] + places, 0)
    return np.where(is_there, stacks.addresses[index], 0) if len(stacks.addresses) else tops
