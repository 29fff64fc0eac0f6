# SPDX-License-Identifier: Apache-2.0
"""No link, no `..` and no device leads out of a root, by the kernel's way and by the one without it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from server.symbols.rooted import open_in_root, open_regular, open_without_links, regular_only

Open = Callable[[Path, str], int | None]


def plainly(root: Path, name: str) -> int | None:
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        found = open_without_links(directory, os.fsencode(name))
        return None if found is None else regular_only(found)
    finally:
        os.close(directory)


def by_kernel(root: Path, name: str) -> int | None:
    return open_in_root(root, PurePosixPath(name))


def content(descriptor: int | None) -> bytes | None:
    if descriptor is None:
        return None
    try:
        return os.pread(descriptor, 100, 0)
    finally:
        os.close(descriptor)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    (inside / "a/b").mkdir(parents=True)
    (inside / "a/b/file").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    (inside / "absolute").symlink_to(tmp_path / "secret")
    (inside / "up").symlink_to("../secret")
    (inside / "above").symlink_to("..")
    (inside / "itself").symlink_to("itself")
    (inside / "proc").symlink_to(f"/proc/{os.getpid()}/cwd")
    os.mkfifo(inside / "fifo")
    return inside


@pytest.mark.parametrize("way", [by_kernel, plainly])
def test_file_inside_is_opened(root: Path, way: Open) -> None:
    assert content(way(root, "a/b/file")) == b"inside"


@pytest.mark.parametrize("way", [by_kernel, plainly])
@pytest.mark.parametrize(
    "name", ["absolute", "up", "above/secret", "../secret", "a/../../secret", "itself", "proc/secret", "missing", "a/b"]
)
def test_nothing_leads_out(root: Path, way: Open, name: str) -> None:
    assert content(way(root, name)) is None


def test_link_that_stays_inside_is_followed(root: Path) -> None:
    """As Fedora's .build-id directories are made."""
    (root / "a/link").symlink_to("../a/b/file")
    (root / "a/rooted").symlink_to("/a/b/file")
    assert content(by_kernel(root, "a/link")) == b"inside"
    assert content(by_kernel(root, "a/rooted")) == b"inside"


@pytest.mark.parametrize("name", ["fifo", "", "/", "a\0b"])
def test_what_is_no_file_is_not_opened(root: Path, name: str) -> None:
    assert by_kernel(root, name) is None


def test_root_that_is_not_there(tmp_path: Path) -> None:
    assert by_kernel(tmp_path / "missing", "a") is None


def test_what_is_no_file_is_never_opened_to_learn_that(root: Path) -> None:
    """Opening alone starts a watchdog and rewinds a tape. A FIFO tells: a writer gets in only while somebody has it open for reading."""
    other_end: list[int] = []
    os_open = os.open

    def watching(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        descriptor = os_open(path, flags, *rest, **more)
        try:
            other_end.append(os_open(root / "fifo", os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            assert error.errno == errno.ENXIO  # nobody reads
        return descriptor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", watching)
        assert (open_regular(root / "fifo"), plainly(root, "fifo"), by_kernel(root, "fifo")) == (None, None, None)
    assert other_end == []
    assert content(open_regular(root / "a/b/file")) == b"inside"
    assert (open_regular(root / "a"), open_regular(root / "missing"), open_regular(Path("/dev/null"))) == (None, None, None)
