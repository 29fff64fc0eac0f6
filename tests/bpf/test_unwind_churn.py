# SPDX-License-Identifier: Apache-2.0
"""Processes that fork, exec, open libraries and make code all the time: nothing gets a wrong name, and what was missed is counted."""

import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from agent.records.drain import StackStop
from agent.records.process import Fate
from tests.support.unwind_programs import CHURN_TRUTH, build, build_library, is_true
from tests.support.unwinding import Names, observing

FEWEST_SAMPLES = 300
FEWEST_CHILDREN = 3
"""In half a second; one may be known from the time before."""
DEADLINE_S = 60


def test_no_wrong_name_while_programs_come_and_go(header_directory: Path, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    program = build(tmp_path, "modes", "-no-pie")
    libraries = [build_library(tmp_path, name) for name in ("one", "two")]
    names = Names(program, *libraries)
    outcome: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    through_jit = 0
    with subprocess.Popen([str(program), *map(str, libraries), "churn"]) as process:
        try:
            with observing(header_directory, tmp_path, [process.pid]) as observer:
                until = time.monotonic() + DEADLINE_S
                while time.monotonic() < until:
                    observer.meet(1.0)
                    for walk in observer.window():
                        frames = ["*" if name == "-" else name for name in names.frames(walk)]  # mapped after the last look: unknown
                        outcome[_outcome(walk.process.fate, walk.stop)] += walk.samples
                        through_jit += walk.samples * (frames[:3] == ["spin", "*", "in_jit"] and walk.stop is StackStop.BOTTOM)
                        if walk.process.fate is Fate.ALIVE and not _is_true(frames, walk.stop):
                            wrong[f"{walk.stop.name}: {' '.join(frames)}"] += walk.samples
                    if outcome["BOTTOM"] > FEWEST_SAMPLES and through_jit:
                        break
        finally:
            process.kill()
    assert not wrong
    assert outcome["BOTTOM"] > FEWEST_SAMPLES, outcome
    assert through_jit


@pytest.mark.exact
def test_forked_children_are_walked_by_the_mappings_of_their_parent_before_they_are_met(header_directory: Path, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    program = build(tmp_path, "modes", "-no-pie")
    libraries = [build_library(tmp_path, name) for name in ("one", "two")]
    with subprocess.Popen([str(program), *map(str, libraries), "churn"]) as process:
        try:
            with observing(header_directory, tmp_path, [process.pid]) as observer:
                until = time.monotonic() + DEADLINE_S
                whole: set[int] = set()
                while len(whole) < FEWEST_CHILDREN and time.monotonic() < until:
                    observer.meet(1.0)  # The parent's tables may have to come first.
                    observer.window()
                    time.sleep(0.5)  # Nobody is met meanwhile.
                    whole = {walk.pid for walk in observer.window() if walk.stop is StackStop.BOTTOM} - {process.pid}
        finally:
            process.kill()
    assert len(whole) >= FEWEST_CHILDREN


def _outcome(fate: Fate, stop: StackStop) -> str:
    return stop.name if fate is Fate.ALIVE else fate.name


def _is_true(frames: list[str], stop: StackStop) -> bool:
    """Of a whole stack every name; of one that is not whole the innermost, for the others are told to be uncertain."""
    if stop is StackStop.BOTTOM:
        return any(is_true(frames, truth) for truth in CHURN_TRUTH.values())
    return frames[0] in {"*", "?", *(word for truth in CHURN_TRUTH.values() for word in truth.split())}
