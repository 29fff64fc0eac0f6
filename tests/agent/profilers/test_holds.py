# SPDX-License-Identifier: Apache-2.0
"""Holds are of the locks that waits are of; what the programs see is tested on the real kernel."""

import numpy as np

from agent.profilers.holds import HOLD_KEY, _objects
from agent.profilers.lock_rows import LOCK_VALUE, LockType


def test_locks_have_the_names_they_have_when_they_are_waited_for() -> None:
    keys = np.zeros(3, HOLD_KEY)
    keys["lock"] = [0x7F00, 0x7F40, 0x7F00]
    keys["type"] = [LockType.USER, LockType.USER | LockType.PRIORITY, LockType.USER]
    keys["own"]["pid"] = 7
    objects, of_row = _objects(keys, np.zeros(3, LOCK_VALUE))
    assert [objects[at] for at in of_row] == [b"mutex 0x7f00", b"PI mutex 0x7f40", b"mutex 0x7f00"]


def test_nothing_held_is_no_lock() -> None:
    objects, of_row = _objects(np.zeros(0, HOLD_KEY), np.zeros(0, LOCK_VALUE))
    assert (objects, of_row.tolist()) == ([b""], [])
