# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of second looks, and of what it makes of young processes."""

import os
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agent.process.revisits import Revisits
from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.records.process import Fate, ProcessKey
from tests.support.processes import key_of, python

WAIT = "print('ready'); import signal; signal.pause()"
KEYS = [ProcessKey(pid, 23, 1) for pid in (7, 11, 13)]


def test_looks_come_later_and_later_and_end() -> None:
    now_s = [100.0]
    revisits = Revisits(10, lambda: now_s[0])
    assert revisits.wait_s() is None
    step = 0
    for pause_s in (0.002, 0.01, 0.03, 0.15, 0.6):
        assert revisits.plan(KEYS[0], step)
        assert revisits.take_due() == []
        assert revisits.wait_s() == pytest.approx(pause_s)
        now_s[0] += pause_s + 0.001
        assert revisits.wait_s() == 0
        ((key, step),) = revisits.take_due()
        assert key == KEYS[0]
    assert not revisits.plan(KEYS[0], step)
    assert revisits.wait_s() is None


def test_the_plan_is_bounded() -> None:
    now_s = [0.0]
    revisits = Revisits(2, lambda: now_s[0])
    assert [revisits.plan(key) for key in KEYS] == [True, True, False]
    now_s[0] = 1.0
    assert {key for key, _ in revisits.take_due()} == set(KEYS[:2])


def test_what_is_expected_is_read_a_moment_later_and_leaves_nothing_when_it_is_gone() -> None:
    now_s = [0.0]
    found = ProcessTable(ProcessSettings(), now_s=lambda: now_s[0])
    with python(WAIT) as lives, python(WAIT) as dies:
        alive, gone = key_of(lives), key_of(dies)
        found.expect([alive, gone, alive])
        found.see([])
        assert found.counts().processes == 0
        subprocess.run(["kill", "-KILL", str(dies)], check=True)
        os.waitid(os.P_PID, dies, os.WEXITED)
        now_s[0] = 0.003
        found.see([])
        assert found.get(alive).fate is Fate.ALIVE
    assert (found.counts().processes, found.counts().seen, found.counts().exited) == (1, 1, 0)
    found.close()


def test_what_is_only_expected_leaves_room_for_what_has_samples() -> None:
    now_s = [0.0]
    found = ProcessTable(replace(ProcessSettings(), new_per_s=0, new_burst=4), now_s=lambda: now_s[0])
    with python(WAIT) as one, python(WAIT) as two, python(WAIT) as three:
        keys = [key_of(pid) for pid in (one, two, three)]
        found.expect(keys)
        now_s[0] = 0.003
        found.see([])
        assert [found.get(key).fate for key in keys] == [Fate.ALIVE, Fate.ALIVE, Fate.EXITED]
        found.see(keys)
        assert found.get(keys[2]).fate is Fate.ALIVE
    assert found.counts().rate_limited == 0
    found.close()


def test_a_flood_of_short_lives_does_not_hide_those_that_live_on() -> None:
    """As a shell script's: more begin in a second than are read, and most are gone before they could be."""
    now_s, gone = [0.0], 1 << 22
    found = ProcessTable(replace(ProcessSettings(), new_per_s=1, new_burst=8), now_s=lambda: now_s[0])
    with python(WAIT) as first, ExitStack() as short:
        keys = [key_of(short.enter_context(python(WAIT))) for _ in range(7)]
        found.see([ProcessKey(gone + i, 1, 1) for i in range(99)])
        found.see(keys)
        assert found.counts().rate_limited == 1  # a quarter of the budget is left, and what is gone took nothing of it
        found.see([key_of(first)])
        assert found.get(key_of(first)).fate is Fate.EXITED
        now_s[0] = 0.2
        found.see([])
        assert found.get(key_of(first)).fate is Fate.ALIVE
        assert found.counts().rate_limited == 2
    found.close()


def test_put_off_for_long_is_read_when_there_is_budget() -> None:
    now_s = [0.0]
    found = ProcessTable(replace(ProcessSettings(), new_per_s=2, new_burst=1), now_s=lambda: now_s[0])
    with python(WAIT) as one, python(WAIT) as two:
        keys = [key_of(one), key_of(two)]
        found.see(keys)
        for now in (0.2, 0.9):
            assert sorted(found.get(key).fate.name for key in keys) == ["ALIVE", "EXITED"]
            now_s[0] = now
            found.see([])
        assert [found.get(key).fate for key in keys] == [Fate.ALIVE] * 2
    found.close()


def test_a_process_in_the_middle_of_exec_is_read_when_it_is_over(tmp_path: Path) -> None:
    now_s = [0.0]
    process = tmp_path / "7"
    process.mkdir()
    stat = "7 (x) S 1 2 3 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 700 3133440 407 184467 {} 8192 12288\n"
    (process / "stat").write_text(stat.format(0))  # the code has no address yet
    (process / "maps").write_text("1000-2000 r-xp 00000000 00:00 0 \n")
    found = ProcessTable(ProcessSettings(), tmp_path, lambda: now_s[0])
    key = ProcessKey(7, 7_000_000_000, 5)
    found.see([key])
    assert found.get(key).fate is Fate.EXITED
    assert found.wait_s() == pytest.approx(0.002)
    (process / "stat").write_text(stat.format(4096))
    now_s[0] = 0.04
    found.see([])
    assert found.get(key).fate is Fate.ALIVE
    assert (found.counts().seen, found.counts().exited) == (1, 0)


def test_a_young_process_is_looked_at_again(tmp_path: Path) -> None:
    now_s = [0.0]
    process = tmp_path / "7"
    process.mkdir()
    (process / "stat").write_text("7 (x) S 1 2 3 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 700 3133440 407 184467 4096 8192 12288\n")
    (process / "maps").write_text("1000-2000 r-xp 00000000 00:00 0 \n")
    (process / "statm").write_text("23 1 1 1 0 7 0\n")
    found = ProcessTable(ProcessSettings(), tmp_path, lambda: now_s[0])
    key = ProcessKey(7, 7_000_000_000, 5)
    found.see([key])
    (process / "maps").write_text("1000-2000 r-xp 00000000 00:00 0 \n3000-4000 r-xp 00000000 00:00 0 \n")
    (process / "statm").write_text("24 1 1 1 0 7 0\n")
    found.see([])
    assert len(found.get(key).mappings) == 1
    now_s[0] = 0.04
    found.see([])
    assert len(found.get(key).mappings) == 2
