# SPDX-License-Identifier: Apache-2.0
"""The settings and counters that the lock programs share with the collector; what they do is tested on the real kernel."""

from agent.profilers.locks import GROUP, LOCK_COUNTS, LOCK_SETTINGS, SPEC


def test_layouts_are_those_of_the_programs() -> None:
    assert LOCK_SETTINGS.size == 4 * 8
    assert LOCK_COUNTS.itemsize == 7 * 8


def test_one_group_makes_one_kind() -> None:
    assert GROUP.kinds == ("lock",)
    assert GROUP.spec() is SPEC
