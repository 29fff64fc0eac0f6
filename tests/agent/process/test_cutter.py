# SPDX-License-Identifier: Apache-2.0
"""Tests of the jailed child that cuts uploads."""

import os
import sys
from pathlib import Path

from agent.process.cutter import Cut, cut_for_upload
from tests.support.elf_files import elf_with_sections

SECTIONS = [(1, 2 | 4, b"\xc3" * 40_960), (2, 0, b"symbols!")]


def cut_file(path: Path, directory: Path) -> Cut:
    source = os.open(path, os.O_RDONLY)
    try:
        return cut_for_upload(source, directory)
    finally:
        os.close(source)


def test_a_file_is_cut(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(elf_with_sections(SECTIONS))
    found = cut_file(tmp_path / "in", tmp_path)
    assert found.reason == ""
    assert found.fd is not None
    raw = os.read(found.fd, 1 << 20)
    os.close(found.fd)
    assert len(raw) == found.size_bytes < 1000
    assert b"symbols!" in raw
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_this_interpreter_is_cut() -> None:
    directory = Path("/tmp")
    found = cut_file(Path(sys.executable).resolve(), directory)
    assert found.fd is not None
    os.close(found.fd)
    assert 0 < found.size_bytes < Path(sys.executable).resolve().stat().st_size


def test_a_hostile_file_ends_as_a_reason(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 100)
    assert cut_file(tmp_path / "in", tmp_path) == Cut(None, 0, "malformed ELF file")


def test_a_file_that_is_none_ends_as_a_reason(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"x" * 100)
    assert cut_for_upload(reader, tmp_path) == Cut(None, 0, "could not be copied")
    os.close(reader)
    os.close(writer)


def test_no_directory_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(elf_with_sections(SECTIONS))
    assert cut_file(tmp_path / "in", tmp_path / "none").reason.startswith("no room in ")


def test_the_child_is_ended_when_it_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(elf_with_sections(SECTIONS))
    source = os.open(tmp_path / "in", os.O_RDONLY)
    assert cut_for_upload(source, tmp_path, timeout_s=0.0).reason == "cutting took too long"
    os.close(source)


def test_more_than_two_gibibytes_are_not_begun(tmp_path: Path) -> None:
    raw = bytearray(elf_with_sections(SECTIONS))
    # The symbol table claims 3 GiB of a file that is one hole of 4 GiB.
    table_at = int.from_bytes(raw[0x28:0x30], "little")
    raw[table_at + 128 + 0x20 : table_at + 128 + 0x28] = (3 << 30).to_bytes(8, "little")
    (tmp_path / "giant").write_bytes(raw)
    os.truncate(tmp_path / "giant", 4 << 30)
    assert cut_file(tmp_path / "giant", tmp_path) == Cut(None, 0, "over 2 GiB without its text")
