# SPDX-License-Identifier: Apache-2.0
"""Who asked for a kernel lock."""

import numpy as np
import pytest

from agent.kernel.program import SymbolNames
from agent.profilers.lock_names import CallerNames, is_part_of_locking
from agent.records.drain import Stacks

NAMES = {0x10: b"__traceiter_contention_end", 0x20: b"__mutex_lock.constprop.0", 0x30: b"mutex_lock", 0x40: b"do_unlinkat", 0x50: b""}


class Kallsyms:
    """Answers like the child, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def __call__(self, addresses: list[int]) -> SymbolNames:
        self.asked.append(addresses)
        return SymbolNames(tuple(NAMES[address] for address in addresses), 0, 0)


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
    kallsyms = Kallsyms()
    names = CallerNames(kallsyms)
    known = stacks((0x10, 0x20, 0x30, 0x40), (0x20, 0x50, 0x30))
    asked_for = np.array([2, 1, 7, 0], np.uint64)  # 7 is in no window, 0 is no stack
    for _ in range(2):  # the second time from memory
        found = names.callers(asked_for, known)
        assert [found.texts[at] for at in found.of_row] == [b"", b"do_unlinkat", b"", b""]
    assert kallsyms.asked == [[0x10, 0x20, 0x30, 0x40, 0x50]]


def test_names_that_did_not_come_are_asked_for_again_and_less_often_each_time() -> None:
    asked = 0

    def silent(addresses: list[int]) -> SymbolNames:
        nonlocal asked
        asked += 1
        return SymbolNames((b"",) * len(addresses), 0, 0, is_answer=False)

    names = CallerNames(silent)
    for _ in range(1 + 2 + 1 + 4 + 1):  # two rests after the first failure, four after the second
        names.learn([0x40])
    assert asked == 3
    names._ask, names._rest = Kallsyms(), 0
    names.learn([0x40])
    found = names.symbols(np.array([0x40], np.uint64))
    assert found.texts[found.of_row[0]] == b"do_unlinkat"


def test_without_stacks_nobody_is_asked() -> None:
    kallsyms = Kallsyms()
    found = CallerNames(kallsyms).callers(np.zeros(2, np.uint64), stacks())
    assert [found.texts[at] for at in found.of_row] == [b"", b""]
    assert kallsyms.asked == []


@pytest.mark.parametrize(
    "name", [b"_raw_spin_lock_irqsave", b"down_write_killable", b"rwsem_down_read_slowpath", b"__pv_queued_spin_lock_slowpath"]
)
def test_parts_of_locking(name: bytes) -> None:
    assert is_part_of_locking(name)


@pytest.mark.parametrize("name", [b"do_unlinkat", b"update_process_times", b"downgrade_file", b"spinning_wheel", b"mutexes_of_inode"])
def test_other_functions(name: bytes) -> None:
    assert not is_part_of_locking(name)
