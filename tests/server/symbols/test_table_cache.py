# SPDX-License-Identifier: Apache-2.0
"""The cache of tables: complete files only, bounded, and never in the way of a start."""

import os
from dataclasses import replace
from pathlib import Path

from server.symbols.build_result import Quality
from server.symbols.identity import BinaryKey
from server.symbols.table import TableFacts
from server.symbols.table_cache import TableCache
from tests.server.symbols.inline_tables import shop
from tests.server.symbols.test_table import FACTS, KEY, file_of


def key(number: int) -> BinaryKey:
    return replace(KEY, content_hash=bytes([number]) * 16)


def built(cache: TableCache, facts: TableFacts) -> Path:
    path = cache.build_directory / "new.part"
    path.write_bytes(file_of(facts))
    return path


def add(cache: TableCache, number: int, quality: Quality = Quality.FULL) -> None:
    cache.add(key(number), built(cache, replace(FACTS, key=key(number), quality=quality)))


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_table_is_there_after_a_restart(tmp_path: Path) -> None:
    add(TableCache(tmp_path, 1 << 20), 7)
    again = TableCache(tmp_path, 1 << 20).get(key(7))
    assert again is not None and again.facts.key == key(7)
    [path] = files(tmp_path)
    digest = key(7).digest
    assert path == tmp_path / "tables" / digest[:2] / f"{digest[2:]}.names"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_for_an_unknown_binary(tmp_path: Path) -> None:
    assert TableCache(tmp_path, 1 << 20).get(key(7)) is None


def test_same_build_id_other_content_are_two_tables(tmp_path: Path) -> None:
    """C38"""
    cache = TableCache(tmp_path, 1 << 20)
    add(cache, 7)
    assert cache.get(key(8)) is None
    add(cache, 8)
    assert len(files(tmp_path)) == 2


def test_a_damaged_file_is_dropped_and_start_succeeds(tmp_path: Path) -> None:
    add(TableCache(tmp_path, 1 << 20), 7)
    [path] = files(tmp_path)
    data = path.read_bytes()
    for damaged in (data[:-1], b"", data[:-1] + bytes([data[-1] ^ 1]), b"x" * 4096):
        path.write_bytes(damaged)
        assert TableCache(tmp_path, 1 << 20).get(key(7)) is None
        assert not path.exists()


def test_half_written_files_go_at_the_start_and_foreign_ones_stay(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 1 << 20)
    built(cache, FACTS)
    (tmp_path / "tables" / "README").write_text("mine")
    TableCache(tmp_path, 1 << 20)
    assert [path.name for path in files(tmp_path)] == ["README"]


def test_the_longest_unused_leaves_first(tmp_path: Path) -> None:
    size = len(file_of())
    cache = TableCache(tmp_path, 3 * size)
    for number in (1, 2, 3):
        add(cache, number)
        place = tmp_path / "tables" / key(number).digest[:2] / f"{key(number).digest[2:]}.names"
        os.utime(place, (1000 + number, 1000 + number))
    assert cache.get(key(1)) is not None  # Used now: the second is the oldest.
    add(cache, 4)
    fresh = TableCache(tmp_path, 3 * size)
    assert [number for number in (1, 2, 3, 4) if fresh.get(key(number)) is not None] == [1, 3, 4]
    assert fresh.size_bytes() == 3 * size


def test_one_table_over_the_limit_stays_alone(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 1)
    add(cache, 1)
    os.utime(files(tmp_path)[0], (1, 1))
    add(cache, 2)
    assert len(files(tmp_path)) == 1
    assert cache.get(key(2)) is not None


def test_a_poorer_table_does_not_replace_a_better_one(tmp_path: Path) -> None:
    """C40: and a better one replaces a poorer one."""
    cache = TableCache(tmp_path, 1 << 20)
    for quality, expected in [(1, 1), (3, 3), (1, 3), (4, 4), (3, 4), (4, 4)]:
        add(cache, 7, Quality(quality))
        table = cache.get(key(7))
        assert table is not None and table.facts.quality == expected
        assert len(files(tmp_path)) == 1


def test_of_equal_quality_the_table_with_lines_stays(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, 1 << 20)
    path = cache.build_directory / "new.part"
    path.write_bytes(file_of(replace(FACTS, key=key(7)), shop()))
    assert cache.add(key(7), path).inlines is not None
    add(cache, 7)
    kept = cache.get(key(7))
    assert kept is not None and kept.inlines is not None
    add(cache, 7, Quality.DWARF)
    better = cache.get(key(7))
    assert better is not None and better.facts.quality == Quality.DWARF
