# SPDX-License-Identifier: Apache-2.0
"""Units lead to the .dwp files that hold them, within bounds."""

import os
from pathlib import Path

import numpy as np
import pytest

from server.symbols.split_ids import U64
from server.symbols.split_packs import SplitPacks, pack_id


def ids(*some: int) -> U64:
    return np.array(some, np.uint64)


def test_each_unit_leads_to_its_files_also_after_a_restart(tmp_path: Path) -> None:
    small, big = ids(7, 23), ids(7, 11, 1 << 63)
    packs = SplitPacks(tmp_path, 0)
    packs.add(small)
    packs.add(big)
    (tmp_path / "packs/x.part").write_bytes(b"half")
    (tmp_path / "packs/README").write_text("foreign")
    again = SplitPacks(tmp_path, 0)
    assert not (tmp_path / "packs/x.part").exists()
    assert again.holding([23]) == [pack_id(small)]
    assert again.holding({1 << 63, 13}) == [pack_id(big)]
    assert again.holding({7, 11}) == [pack_id(big), pack_id(small)]
    assert again.holding([]) == again.holding([13]) == []


@pytest.mark.parametrize(("bound", "most"), [("MAX_PACKS", 2), ("MAX_BYTES", 2 * 2 * 8)])
def test_what_was_used_longest_ago_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(f"server.symbols.split_packs.{bound}", most)
    packs = SplitPacks(tmp_path, 0)
    for at, first in enumerate((10, 20)):
        packs.add(ids(first, first + 1))
        os.utime(tmp_path / "packs" / pack_id(ids(first, first + 1)).hex(), (at, at))
    assert packs.holding([10])  # Used now.
    packs.add(ids(30, 31))
    assert [len(packs.holding([one])) for one in (11, 21, 31)] == [1, 0, 1]


def test_the_reserve_of_the_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.symbols.split_packs.refusal_for_room", lambda *_: "no room")
    packs = SplitPacks(tmp_path, 0)
    packs.add(ids(7, 23))
    assert packs.holding([7]) == []
