# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables on disk."""

import os
from pathlib import Path

import numpy as np
import pytest

from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.unwind.cache import TableCache, kept_tables
from agent.unwind.table_file import pack_miss, pack_table

TABLE = UnwindTable(np.array([0x1000, 0x1040], np.uint64), np.array([rule(RuleKind.SP, 1), 0], np.uint32))
ONE, TWO, THREE = (bytes((number,)) * 16 for number in (1, 2, 3))
TABLE_BYTES = len(pack_table(TABLE, ONE))


def put(cache: TableCache, digest: bytes) -> None:
    cache.put(digest, pack_table(TABLE, digest), TABLE)


def is_there(cache: TableCache, digest: bytes) -> bool:
    return isinstance(cache.get(digest), UnwindTable)


def test_a_table_survives_a_restart(tmp_path: Path) -> None:
    put(TableCache(tmp_path, 1 << 20), ONE)
    cache = TableCache(tmp_path, 1 << 20)
    found = cache.get(ONE)
    assert isinstance(found, UnwindTable)
    assert found.addresses.tolist() == [0x1000, 0x1040]
    assert cache.get(TWO) is None
    assert cache.size_bytes == TABLE_BYTES


def test_lasting_reasons_are_kept_and_passing_ones_are_not(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 1 << 20)
    cache.put(ONE, pack_miss(TableMiss.MALFORMED, ONE), TableMiss.MALFORMED)
    cache.put(TWO, pack_miss(TableMiss.FAILED, TWO), TableMiss.FAILED)
    assert (cache.get(ONE), cache.get(TWO)) == (TableMiss.MALFORMED, None)


def test_the_table_used_longest_ago_leaves_first(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 2 * TABLE_BYTES)
    put(cache, ONE)
    put(cache, TWO)
    assert is_there(cache, ONE)
    put(cache, THREE)
    assert [is_there(cache, digest) for digest in (ONE, TWO, THREE)] == [True, False, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{ONE.hex()}.unwind", f"{THREE.hex()}.unwind"]


def test_use_is_remembered_over_a_restart(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 2 * TABLE_BYTES)
    for age_s, digest in ((20, ONE), (10, TWO)):
        put(cache, digest)
        os.utime(tmp_path / f"{digest.hex()}.unwind", (1e9 - age_s, 1e9 - age_s))
    assert is_there(TableCache(tmp_path, 2 * TABLE_BYTES), ONE)
    cache = TableCache(tmp_path, 2 * TABLE_BYTES)
    put(cache, THREE)
    assert [is_there(cache, digest) for digest in (ONE, TWO)] == [True, False]


def test_a_damaged_file_is_dropped_and_counted(tmp_path: Path) -> None:
    put(TableCache(tmp_path, 1 << 20), ONE)
    (tmp_path / f"{ONE.hex()}.unwind").write_bytes(b"EWUT")
    cache = TableCache(tmp_path, 1 << 20)
    assert cache.get(ONE) is None
    assert cache.damaged == 1
    assert list(tmp_path.iterdir()) == []


def test_starts_whatever_the_directory_holds(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    (tmp_path / f"{ONE.hex()}.unwind-part").write_bytes(b"half")
    (tmp_path / f"{TWO.hex()}.unwind").mkdir()
    (tmp_path / f"{THREE.hex()}.unwind").symlink_to("/etc/passwd")
    cache = TableCache(tmp_path, 1 << 20)
    assert (cache.size_bytes, cache.get(TWO), cache.get(THREE)) == (0, None, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["notes", f"{TWO.hex()}.unwind", f"{THREE.hex()}.unwind"])


def test_a_disk_that_refuses_costs_only_the_copy(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    cache = TableCache(tmp_path / "file" / "tables", 1 << 20)
    put(cache, ONE)
    assert cache.get(ONE) is None
    assert "unwind table not kept" in caplog.text


def test_what_is_kept_is_told_from_the_heads_of_the_files(tmp_path: Path) -> None:
    assert kept_tables(tmp_path / "none").tables == 0
    cache = TableCache(tmp_path, 1 << 20)
    put(cache, ONE)
    put(cache, TWO)
    refusal = pack_miss(TableMiss.MALFORMED, THREE)
    cache.put(THREE, refusal, TableMiss.MALFORMED)
    (tmp_path / "cut.unwind").write_bytes(b"EWUT")
    (tmp_path / "other.unwind").write_bytes(bytes(100))
    (tmp_path / "strange.unwind").write_bytes(pack_table(TABLE, ONE)[:6] + b"\xff\xff" + bytes(100))
    (tmp_path / "other").write_bytes(b"EWUT")
    found = kept_tables(tmp_path)
    assert (found.tables, found.misses) == (2, {TableMiss.MALFORMED: 1})
    assert found.size_bytes >= 2 * TABLE_BYTES + len(refusal)
