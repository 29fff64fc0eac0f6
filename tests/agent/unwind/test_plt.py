# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules for jumps into other files."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from agent.records.unwind import RuleKind, UnwindTable, rule
from agent.unwind.eh_frame import find_eh_frame
from agent.unwind.lockstep import decode
from agent.unwind.plt import Plt, plt_of, with_plts

CALLED = rule(RuleKind.SP, 1)
OTHER = rule(RuleKind.SP, 7)
PUSH_GOT = b"\xff\x35" + bytes(14)
JUMP, ENDBR64 = b"\xff\x25" + bytes(14), b"\xf3\x0f\x1e\xfa" + bytes(12)


def table(*rows: tuple[int, int]) -> UnwindTable:
    return UnwindTable(np.array([row[0] for row in rows], np.uint64), np.array([row[1] for row in rows], np.uint32))


def rows(found: UnwindTable) -> list[tuple[int, int]]:
    return list(zip(found.addresses.tolist(), found.rules.tolist(), strict=True))


@pytest.mark.parametrize(("head", "pushed_at"), [(JUMP, 0), (PUSH_GOT + JUMP, 11), (PUSH_GOT + ENDBR64, 9), (b"", 0)])
def test_the_first_bytes_tell_the_kind(head: bytes, pushed_at: int) -> None:
    assert plt_of(head, 0x1000, 0x1100) == Plt(0x1000, 0x1100, pushed_at)


def test_entries_that_only_jump_are_as_at_their_call() -> None:
    found = with_plts(table((0x2000, OTHER), (0x3000, RuleKind.NONE)), (Plt(0x1000, 0x1100, 0),))
    assert rows(found) == [(0x1000, CALLED), (0x1100, RuleKind.NONE), (0x2000, OTHER), (0x3000, RuleKind.NONE)]


def test_entries_that_push_go_by_the_place_in_them() -> None:
    found = with_plts(table((0x1100, OTHER), (0x3000, RuleKind.NONE)), (Plt(0x1000, 0x1100, 11),))
    expected = [(0x1000, rule(RuleKind.SP, 2)), (0x1006, rule(RuleKind.SP, 3)), (0x1010, rule(RuleKind.PLT, 11))]
    assert rows(found) == [*expected, (0x1100, OTHER), (0x3000, RuleKind.NONE)]


def test_two_sections_in_the_hole_between_functions() -> None:
    before = table((0x500, OTHER), (0x1000, RuleKind.NONE), (0x2000, OTHER), (0x3000, RuleKind.NONE))
    found = with_plts(before, (Plt(0x1000, 0x1100, 0), Plt(0x1100, 0x1180, 0), Plt(0x3000, 0x3100, 0)))
    expected = [(0x500, OTHER), (0x1000, CALLED), (0x1180, RuleKind.NONE), (0x2000, OTHER), (0x3000, CALLED), (0x3100, RuleKind.NONE)]
    assert rows(found) == expected


@pytest.mark.parametrize("plt", [Plt(0x1800, 0x1900, 0), Plt(0x900, 0x1100, 0), Plt(0x2100, 0x2100, 0), Plt(0x2200, 0x2100, 0)])
def test_what_has_rules_keeps_them(plt: Plt) -> None:
    before = table((0x1000, OTHER), (0x2000, RuleKind.NONE))
    assert rows(with_plts(before, (plt,))) == rows(before)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_jumps_of_a_static_program_have_rules(tmp_path: Path) -> None:
    program = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-x", "c", "-o", program, "-"], input=b"int main(void) { return 0; }", check=True)
    file = os.open(program, os.O_RDONLY)
    frame = find_eh_frame(lambda offset, size: os.pread(file, size, offset))
    os.close(file)
    (plt,) = frame.plts
    before = decode(frame)
    assert before.rules[np.searchsorted(before.addresses, np.uint64(plt.start), side="right") - 1] == RuleKind.NONE
    found = dict(rows(with_plts(before, frame.plts)))
    assert (found[plt.start], found[plt.end]) == (CALLED, RuleKind.NONE)
