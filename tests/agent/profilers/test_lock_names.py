# SPDX-License-Identifier: Apache-2.0
"""Who asked for a kernel lock."""

import numpy as np
import numpy.typing as npt
import pytest

from agent.profilers.lock_names import CallerNames, is_part_of_locking
from agent.records.drain import Stacks

NAMES = {0x10: b"__traceiter_contention_end", 0x20: b"__mutex_lock.constprop.0", 0x30: b"mutex_lock", 0x40: b"do_unlinkat", 0x50: b""}


def symbols(addresses: npt.NDArray[np.uint64]) -> list[bytes]:
    """What is known of the kernel."""
    return [NAMES.get(address, b"") for address in addresses.tolist()]


def stacks(*addresses: tuple[int, ...]) -> Stacks:
    lengths = [len(stack) for stack in addresses]
    return Stacks(
        hashes=np.arange(1, len(addresses) + 1, dtype=np.uint64),
        bounds=np.concatenate(([0], np.cumsum(lengths))),
        addresses=np.array([address for stack in addresses for address in stack], np.uint64),
        is_truncated=np.zeros(len(addresses), np.bool_),
        stops=np.zeros(len(addresses), np.uint8),
    )


def test_the_first_function_that_is_not_about_locking_asked_for_it() -> None:
    known = stacks((0x10, 0x20, 0x30, 0x40), (0x20, 0x50, 0x30))
    asked_for = np.array([2, 1, 7, 0], np.uint64)  # 7 is in no window, 0 is no stack
    found = CallerNames(symbols).callers(asked_for, known)
    assert [found.texts[at] for at in found.of_row] == [b"", b"do_unlinkat", b"", b""]


def test_locks_are_named_by_their_address_where_it_has_a_name() -> None:
    found = CallerNames(symbols).symbols(np.array([0x40, 0, 0x99, 0x40], np.uint64))
    assert [found.texts[at] for at in found.of_row] == [b"do_unlinkat", b"", b"", b"do_unlinkat"]


def test_without_stacks_nobody_asked() -> None:
    found = CallerNames(symbols).callers(np.zeros(2, np.uint64), stacks())
    assert [found.texts[at] for at in found.of_row] == [b"", b""]


@pytest.mark.parametrize(
    "name", [b"_raw_spin_lock_irqsave", b"down_write_killable", b"rwsem_down_read_slowpath", b"__pv_queued_spin_lock_slowpath"]
)
def test_parts_of_locking(name: bytes) -> None:
    assert is_part_of_locking(name)


@pytest.mark.parametrize("name", [b"do_unlinkat", b"update_process_times", b"downgrade_file", b"spinning_wheel", b"mutexes_of_inode"])
def test_other_functions(name: bytes) -> None:
    assert not is_part_of_locking(name)
