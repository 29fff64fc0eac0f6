# SPDX-License-Identifier: Apache-2.0
"""Stacks keep their addresses whatever set they are put into."""

import numpy as np

from agent.records.stack_sets import joined_stacks, selected_stacks, without_innermost
from tests.support.drains import DrainOf


def test_stacks_of_several_maps_are_joined_by_hash() -> None:
    one, two = DrainOf().row(7, 3, user=[0x10, 0x20, 0x30]).drain().stacks, DrainOf().row(7, 3, user=[0x40]).drain().stacks
    joined = joined_stacks([one, two, one, DrainOf().row(7, 1, user=[0x40]).drain().stacks])
    assert joined.hashes.tolist() == sorted([*one.hashes.tolist(), *two.hashes.tolist()])
    for part in (one, two):
        at = joined.hashes.tolist().index(int(part.hashes[0]))
        assert joined.addresses[joined.bounds[at] : joined.bounds[at + 1]].tolist() == part.addresses.tolist()
    assert joined_stacks([one, one]) is one


def test_part_of_a_set_keeps_only_what_was_asked_for() -> None:
    stacks = DrainOf().row(7, 3, user=[0x10, 0x20]).row(7, 3, user=[0x40]).row(7, 3, user=[0x50, 0x60, 0x70]).drain().stacks
    wanted = stacks.hashes[[0, 2]]
    part = selected_stacks(stacks, np.concatenate((wanted, np.array([12345], np.uint64))))
    assert part.hashes.tolist() == wanted.tolist()
    for hash_, first, end in zip(part.hashes, part.bounds[:-1], part.bounds[1:], strict=True):
        at = stacks.hashes.tolist().index(int(hash_))
        assert part.addresses[first:end].tolist() == stacks.addresses[stacks.bounds[at] : stacks.bounds[at + 1]].tolist()
    assert len(selected_stacks(stacks, np.zeros(0, np.uint64)).addresses) == 0


def test_innermost_frames_of_some_code_are_taken_off_once() -> None:
    stacks = DrainOf().row(7, 3, user=[0x12, 0x14, 0x30]).row(7, 3, user=[0x20]).row(7, 3, user=[0x15]).drain().stacks
    starts, ends = np.array([0x8, 0x10], np.uint64), np.array([0x9, 0x20], np.uint64)
    cut = without_innermost(stacks, starts, ends)
    found = {tuple(cut.addresses[first:end].tolist()) for first, end in zip(cut.bounds[:-1], cut.bounds[1:], strict=True)}
    assert found == {(0x14, 0x30), (0x20,), ()}
    assert cut.hashes.tolist() == stacks.hashes.tolist()
    assert without_innermost(stacks, starts[:0], ends[:0]) is stacks
