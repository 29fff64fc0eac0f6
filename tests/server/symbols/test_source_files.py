# SPDX-License-Identifier: Apache-2.0
"""What is kept of sent files: the better one of each role, for the right binary, within the bound."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.elf_probe import probe
from server.symbols.identity import BinaryKey, key_of
from server.symbols.source_files import Held, SourceFiles, held_of, held_of_file
from server.symbols.sources import Origin, close_all
from tests.server.symbols.programs import compile_program, describe, run_tool

SOURCE = "int main(void) { return 7; }"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return compile_program(SOURCE, tmp_path / "whole", "-g")


@pytest.fixture
def files(tmp_path: Path) -> SourceFiles:
    return SourceFiles(tmp_path / "symbols", 1 << 20, 0)


def keep(files: SourceFiles, held: Held, origin: Origin, path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return files.keep(held, origin, descriptor, probe(descriptor))
    finally:
        os.close(descriptor)


def kept(files: SourceFiles, key: BinaryKey, *code_sizes: int) -> list[tuple[str, int]]:
    sources = files.open(key, code_sizes)
    found = [(source.origin.value, os.fstat(source.descriptor).st_size) for source in sources]
    close_all(sources)
    return found


def test_one_of_each_role_and_the_better_one(tmp_path: Path, whole: Path, files: SourceFiles) -> None:
    stripped, debug = tmp_path / "stripped", tmp_path / "debug"
    run_tool("objcopy", "--strip-all", whole, stripped)
    run_tool("objcopy", "--only-keep-debug", whole, debug)
    key = key_of(describe(stripped))
    assert key.content_hash != describe(whole).content_hash and key.build_id == describe(whole).build_id
    held = Held(key.build_id_kind, key.build_id)
    assert keep(files, held, Origin.UPLOAD, stripped) == ""
    assert keep(files, held, Origin.DEBUGINFOD, debug) == ""
    sizes = {path: path.stat().st_size for path in (whole, stripped, debug)}
    assert kept(files, key) == [("upload", sizes[stripped]), ("debuginfod", sizes[debug])]
    assert keep(files, held, Origin.UPLOAD, whole) == ""
    assert kept(files, key) == [("upload", sizes[whole]), ("debuginfod", sizes[debug])]
    assert keep(files, held, Origin.UPLOAD, stripped) == "a file that tells more is here already"
    again = SourceFiles(tmp_path / "symbols", 1 << 20, 0)
    assert kept(again, key) == [("upload", sizes[whole]), ("debuginfod", sizes[debug])]
    again.drop(key, Origin.UPLOAD)
    assert kept(again, key) == [("debuginfod", sizes[debug])]


def test_what_an_agent_sent_belongs_to_that_binary_only(whole: Path, files: SourceFiles) -> None:
    """C38: two binaries with one build id."""
    key = key_of(describe(whole))
    assert keep(files, held_of(key), Origin.AGENT, whole) == ""
    other = replace(key, content_hash=b"\7" * 16)
    assert (len(kept(files, key)), kept(files, other), files.newest_unix_s(other)) == (1, [], 0.0)
    assert files.newest_unix_s(key) > 0


def test_file_with_other_code_is_passed_over(whole: Path, files: SourceFiles) -> None:
    key = key_of(describe(whole))
    keep(files, Held(key.build_id_kind, key.build_id), Origin.UPLOAD, whole)
    [size] = [segment[3] for segment in describe(whole).segments if segment[4] & 1]
    assert len(kept(files, key, size)) == 1
    assert kept(files, key, size + 16) == []


def test_whose_file_it_is(tmp_path: Path, whole: Path) -> None:
    plain = compile_program(SOURCE, tmp_path / "plain", "-Wl,--build-id=none")
    for path, expected in (
        (whole, Held(1, describe(whole).build_id)),
        (plain, Held(pb.BUILD_ID_KIND_NONE, b"", describe(plain).content_hash)),
    ):
        descriptor = os.open(path, os.O_RDONLY)
        assert held_of_file(probe(descriptor), describe(path).content_hash) == expected
        os.close(descriptor)
    run_tool("objcopy", "--only-keep-debug", plain)
    descriptor = os.open(plain, os.O_RDONLY)
    assert not held_of_file(probe(descriptor), b"\7" * 16).is_known
    os.close(descriptor)


def test_bound_in_bytes_drops_what_was_used_longest_ago(tmp_path: Path, whole: Path) -> None:
    size = whole.stat().st_size
    files = SourceFiles(tmp_path / "symbols", 3 * size, 0)
    key = key_of(describe(whole))
    ids = [bytes([number]) * 20 for number in range(1, 5)]
    for at, build_id in enumerate(ids[:3]):
        keep(files, Held(1, build_id), Origin.UPLOAD, whole)
        [place] = [path for path in (tmp_path / "symbols/files").glob("??/*") if path.name == Held(1, build_id).digest[2:]]
        os.utime(place, (at, at))
    kept(files, replace(key, build_id=ids[0]))  # used now
    keep(files, Held(1, ids[3]), Origin.UPLOAD, whole)
    assert [len(kept(files, replace(key, build_id=build_id))) for build_id in ids] == [1, 0, 1, 1]
    assert files.size_bytes() == 3 * size
    too_small = SourceFiles(tmp_path / "small", size - 1, 0)
    assert keep(too_small, Held(1, ids[0]), Origin.UPLOAD, whole) == f"{size} bytes, at most {size - 1} are kept"
    too_full = SourceFiles(tmp_path / "full", size, 1 << 62)
    assert "would stay free" in keep(too_full, Held(1, ids[0]), Origin.UPLOAD, whole) or os.statvfs(tmp_path).f_bavail > 0


def test_foreign_and_half_files_do_no_harm(tmp_path: Path, whole: Path, files: SourceFiles) -> None:
    key = key_of(describe(whole))
    keep(files, Held(key.build_id_kind, key.build_id), Origin.UPLOAD, whole)
    root = tmp_path / "symbols/files"
    [place] = root.glob("??/*")
    (root / "x.part").write_bytes(b"half")
    (place / "README").write_bytes(b"foreign")
    (place / "debug.upload").write_bytes(b"garbage")
    (place / "debug.agent").symlink_to("/etc/passwd")
    again = SourceFiles(tmp_path / "symbols", 1 << 20, 0)
    assert len(kept(again, key)) == 1
    assert not (root / "x.part").exists()


def test_all_files_are_looked_at_only_when_the_bound_is_passed(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = whole.stat().st_size
    files = SourceFiles(tmp_path / "symbols", 3 * size, 0)
    looks: list[int] = []
    look = files._directories
    monkeypatch.setattr(files, "_directories", lambda: looks.append(1) or look())
    for number in (1, 2, 3, 3, 2, 1):
        assert keep(files, Held(1, bytes([number]) * 20), Origin.UPLOAD, whole) == ""
    assert len(looks) == 1
    files.drop(replace(key_of(describe(whole)), build_id=bytes([1]) * 20), Origin.UPLOAD)
    keep(files, Held(1, bytes([4]) * 20), Origin.UPLOAD, whole)
    assert len(looks) == 1
    keep(files, Held(1, bytes([5]) * 20), Origin.UPLOAD, whole)
    assert (len(looks), files.size_bytes()) == (2, 3 * size)
