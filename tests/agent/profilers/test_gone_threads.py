# SPDX-License-Identifier: Apache-2.0
"""Threads that ended unseen are found by and by, and none is looked for that need not be."""

from pathlib import Path

import numpy as np
import pytest

from agent.profilers import gone_threads
from agent.profilers.gone_threads import GoneThreads


def test_threads_that_are_not_in_proc_are_gone(tmp_path: Path) -> None:
    (tmp_path / "23").mkdir()
    assert GoneThreads(tmp_path).among(np.array([97, 23, 7], np.uint32)).tolist() == [True, False, True]
    assert GoneThreads(tmp_path).among(np.zeros(0, np.uint32)).tolist() == []


def test_a_part_is_looked_for_at_a_time_and_all_are_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone_threads, "MOST_SOUGHT", 3)
    gone, tids = GoneThreads(tmp_path), np.array([50, 10, 40, 20, 30], np.uint32)
    assert sorted(tids[gone.among(tids)].tolist()) == [10, 20, 30]
    assert sorted(tids[gone.among(tids)].tolist()) == [10, 40, 50]


def test_where_nothing_shows_threads_all_that_told_nothing_are_taken_for_gone() -> None:
    assert GoneThreads(None).among(np.array([7, 23], np.uint32)).tolist() == [True, True]
