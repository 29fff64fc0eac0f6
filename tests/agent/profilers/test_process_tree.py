# SPDX-License-Identifier: Apache-2.0
"""Descendants are found in /proc, whatever processes are called."""

from pathlib import Path

from agent.profilers.process_tree import descendants, parents


def test_parent_stands_after_the_last_parenthesis(tmp_path: Path) -> None:
    for pid, stat in {7: b"7 (init) S 0 1", 23: b"23 () S 1 (x) R 7 23", 29: b"29 (a b\xff;) S 23 0", 31: b"31 cut"}.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_bytes(stat)
    (tmp_path / "self").mkdir()
    (tmp_path / "37").mkdir()  # it ended between the listing and the read
    assert parents(tmp_path) == {7: 0, 23: 7, 29: 23}


def test_whole_tree_is_found_without_its_roots() -> None:
    parent_of = {7: 1, 23: 7, 29: 23, 31: 23, 37: 1, 1: 0}
    assert descendants({7}, parent_of) == {23, 29, 31}
    assert descendants({7, 23}, parent_of) == {29, 31}
    assert descendants({37}, parent_of) == set()


def test_circle_ends() -> None:
    assert descendants({7}, {7: 23, 23: 7}) == {23}
