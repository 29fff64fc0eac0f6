# SPDX-License-Identifier: Apache-2.0
"""Starts of holds that nobody will end make room, and each of them is counted once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agent.kernel import program as kernel
from agent.profilers.hold_starts import HOLD_START_KEY, MOST_HELD_NS, MOST_KEPT, HoldStarts

NOW_NS = MOST_HELD_NS + 7_000
ON_SINCE_NS = MOST_HELD_NS
STARTS_MAP = 23
Batch = tuple["np.ndarray[tuple[int], np.dtype[np.void]]", "np.ndarray[tuple[int], np.dtype[np.uint64]]"]


class Starts:
    """The map: (tid, lock) and when its hold began."""

    def __init__(self, began_ns: dict[tuple[int, int], int]) -> None:
        self.began_ns = began_ns
        self.ended_meanwhile: set[tuple[int, int]] = set()

    def read_all(self, descriptor: int, key_type: "np.dtype[np.void]", value_type: "np.dtype[np.uint64]", chunk: int) -> Iterator[Batch]:
        assert (descriptor, key_type) == (STARTS_MAP, HOLD_START_KEY)
        keys = np.zeros(len(self.began_ns), key_type)
        for row, (tid, lock) in zip(keys, self.began_ns, strict=True):
            row["tid"], row["lock"] = tid, lock
        values = np.array(list(self.began_ns.values()), value_type)
        for at in range(0, len(keys), chunk):
            yield keys[at : at + chunk], values[at : at + chunk]
        for key in self.ended_meanwhile:
            del self.began_ns[key]

    def delete(self, descriptor: int, key: bytes) -> bool:
        row = np.frombuffer(key, HOLD_START_KEY)[0]
        assert descriptor == STARTS_MAP
        return self.began_ns.pop((int(row["tid"]), int(row["lock"])), None) is not None


@pytest.fixture
def proc_root(tmp_path: Path) -> Path:
    """Threads 7 and 11 are there."""
    for tid in (7, 11):
        (tmp_path / str(tid)).mkdir()
    return tmp_path


def forget(monkeypatch: pytest.MonkeyPatch, starts: Starts, proc_root: Path | None, on_since_ns: int = ON_SINCE_NS) -> int:
    monkeypatch.setattr(kernel, "read_all", starts.read_all)
    monkeypatch.setattr(kernel, "delete", starts.delete)
    return HoldStarts(STARTS_MAP, proc_root).forget_unended(on_since_ns, NOW_NS)


def test_what_threads_hold_that_have_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    starts = Starts({(7, 1): NOW_NS, (8, 1): NOW_NS, (8, 2): NOW_NS, (11, 2): NOW_NS})
    assert forget(monkeypatch, starts, proc_root) == 2
    assert set(starts.began_ns) == {(7, 1), (11, 2)}


def test_threads_are_not_taken_for_ended_where_they_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forget(monkeypatch, Starts({(8, 1): NOW_NS}), None) == 0


def test_what_began_before_the_programs_were_attached_is_forgotten(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    starts = Starts({(7, 1): ON_SINCE_NS - 1, (7, 2): ON_SINCE_NS})
    assert forget(monkeypatch, starts, proc_root) == 1
    assert set(starts.began_ns) == {(7, 2)}


def test_what_is_held_for_too_long_is_forgotten(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    starts = Starts({(7, 1): NOW_NS - MOST_HELD_NS - 1, (7, 2): NOW_NS - MOST_HELD_NS})
    assert forget(monkeypatch, starts, proc_root, on_since_ns=0) == 1
    assert set(starts.began_ns) == {(7, 2)}


def test_half_of_the_map_is_left_for_the_next_window(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    starts = Starts({(7, lock): ON_SINCE_NS + lock // 4 for lock in range(MOST_KEPT + 400)})
    assert forget(monkeypatch, starts, proc_root) == 400
    assert min(starts.began_ns.values()) == ON_SINCE_NS + 100


def test_what_ended_while_it_was_looked_at_has_its_row_already(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    starts = Starts({(8, 1): NOW_NS, (8, 2): NOW_NS})
    starts.ended_meanwhile.add((8, 1))
    assert forget(monkeypatch, starts, proc_root) == 1


def test_nothing_held_is_nothing_to_forget(monkeypatch: pytest.MonkeyPatch, proc_root: Path) -> None:
    assert forget(monkeypatch, Starts({}), proc_root) == 0
