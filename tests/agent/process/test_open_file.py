# SPDX-License-Identifier: Apache-2.0
"""Tests of finding the file behind a mapping. Written /proc folders have no map_files: they test the way by path."""

import mmap
import os
import time
from pathlib import Path

import pytest

from agent.process.directory import ProcessDirectory
from agent.process.maps import parse_maps
from agent.process.open_file import key_of, look_at, name_of, open_file
from agent.records.process import Mapping


def mapping_of(file: Path, path: str | None = None) -> Mapping:
    found = file.lstat()
    device = (os.major(found.st_dev), os.minor(found.st_dev))
    return Mapping(0x1000, 0x2000, 0, device, found.st_ino, (path or f"/{file.name}").encode())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root folder of process 42 under the proc folder `tmp_path`."""
    root = tmp_path / "42" / "root"
    root.mkdir(parents=True)
    return root


def process(root: Path) -> ProcessDirectory:
    directory = ProcessDirectory.open(root.parent.parent, 42)
    assert directory is not None
    return directory


def read_through(root: Path, mapping: Mapping) -> bytes | None:
    """What the mapping's file holds, or None; asserts that nothing was waited for: who would write into a pipe never comes."""
    started_s = time.monotonic()
    with process(root) as directory:
        found = look_at(directory, mapping)
        fd = open_file(directory, mapping, key_of(found)) if found is not None else None
    assert time.monotonic() - started_s < 20
    if fd is None:
        return None
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def test_a_file_is_found_by_path_inside_the_root(root: Path) -> None:
    (root / "srv").write_bytes(b"container's")
    assert read_through(root, mapping_of(root / "srv")) == b"container's"


def test_another_inode_at_the_path_is_not_taken(root: Path) -> None:
    (root / "old").write_bytes(b"old")
    mapping = mapping_of(root / "old", "/srv")
    (root / "srv").write_bytes(b"new")
    assert read_through(root, mapping) is None


def test_a_fifo_is_looked_at_and_not_opened(root: Path) -> None:
    os.mkfifo(root / "srv")
    assert read_through(root, mapping_of(root / "srv")) is None


def test_links_and_devices_are_not_taken(root: Path) -> None:
    (root / "srv").symlink_to("/etc/shadow")
    assert read_through(root, mapping_of(root / "srv")) is None
    if os.geteuid() == 0:
        os.mknod(root / "null", 0o20666, os.makedev(1, 3))
        assert read_through(root, mapping_of(root / "null")) is None


def test_links_in_the_way_stay_inside_the_root(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"host's")
    (root / "lib").symlink_to(outside)
    assert read_through(root, mapping_of(outside / "x", "/lib/x")) is None
    assert read_through(root, mapping_of(outside / "x", "/../../outside/x")) is None
    (root / "usr").mkdir()
    (root / "usr" / "x").write_bytes(b"container's")
    (root / "bin").symlink_to("/usr")
    assert read_through(root, mapping_of(root / "usr" / "x", "/bin/x")) == b"container's"


def test_a_file_that_changed_since_the_look_is_not_opened(root: Path) -> None:
    (root / "srv").write_bytes(b"one")
    mapping = mapping_of(root / "srv")
    with process(root) as directory:
        found = look_at(directory, mapping)
        assert found is not None
        (root / "srv").write_bytes(b"another")
        assert open_file(directory, mapping, key_of(found)) is None


def test_deleted_is_told_by_the_file_not_by_the_suffix(root: Path) -> None:
    live = root / "x (deleted)"
    live.touch()
    with process(root) as directory:
        assert name_of(directory, mapping_of(live)) == b"/x (deleted)"
        gone = mapping_of(live, "/x (deleted) (deleted)")
        assert name_of(directory, gone) == b"/x (deleted)"
        live.unlink()
        assert name_of(directory, Mapping(0x1000, 0x2000, 0, (8, 1), 7, b"/x (deleted)")) == b"/x"


def test_a_deleted_file_is_read_by_map_files(tmp_path: Path) -> None:
    file = tmp_path / "gone"
    file.write_bytes(b"still mapped" + bytes(4096))
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE):
        file.unlink()
        ours = [m for m in parse_maps(Path("/proc/self/maps").read_bytes()).mappings if m.path == str(file).encode() + b" (deleted)"]
        directory = ProcessDirectory.open(Path("/proc"), os.getpid())
        assert directory is not None
        with directory:
            found = look_at(directory, ours[0])
            if found is None:
                pytest.skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE here")
            fd = open_file(directory, ours[0], key_of(found))
            assert name_of(directory, ours[0]) == str(file).encode()
        assert fd is not None
        assert os.read(fd, 12) == b"still mapped"
        os.close(fd)
