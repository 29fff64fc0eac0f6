# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache of binaries."""

import os
import threading
from pathlib import Path

import pytest

from agent.process.binaries import BinaryCache
from agent.process.directory import ProcessDirectory
from agent.records.binary import Binary, FileStamp
from tests.agent.process.test_open_file import mapping_of
from tests.support.elf_files import EXECUTE, PT_LOAD, PT_NOTE, READ, Part, elf, gnu_build_id
from tests.support.processes import open_descriptors


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "42" / "root"
    root.mkdir(parents=True)
    return root


def identify(cache: BinaryCache, file: Path) -> Binary | None:
    directory = ProcessDirectory.open(file.parent.parent.parent, 42)
    assert directory is not None
    with directory:
        return cache.identify(directory, mapping_of(file))


def write_program(root: Path, number: int) -> Path:
    file = root / f"program-{number}"
    file.write_bytes(elf(Part(PT_NOTE, READ, gnu_build_id(number.to_bytes(20, "big"))), Part(PT_LOAD, EXECUTE, b"\xc3" * 64)))
    return file


def test_an_evicted_binary_is_known_again(root: Path) -> None:
    cache = BinaryCache(binaries_max=2, open_max=2)
    files = [write_program(root, number) for number in (7, 23, 31)]
    first = [identify(cache, file) for file in files]
    assert cache.evicted == 1
    assert [identify(cache, file) for file in files] == first
    assert all(binary is not None for binary in first)
    cache.close()


def test_files_of_a_binary_are_known_as_long_as_it_is(root: Path) -> None:
    cache = BinaryCache(binaries_max=2, open_max=2)
    file = write_program(root, 7)
    copy = root / "copy"
    copy.write_bytes(file.read_bytes())
    binary, same = identify(cache, file), identify(cache, copy)
    assert binary is not None
    assert same is not None and same.id == binary.id
    stats = [path.stat() for path in (file, copy)]
    assert cache.files_of(binary.id) == tuple(FileStamp(each.st_ino, each.st_size, each.st_ctime_ns) for each in stats)
    identify(cache, write_program(root, 23))
    assert [stamp.inode for stamp in cache.files_of(binary.id)] == [stats[1].st_ino]
    identify(cache, write_program(root, 31))
    assert cache.files_of(binary.id) == ()
    cache.close()


def test_a_path_means_the_containers_file_not_the_hosts(root: Path) -> None:
    """The host has another program at the very path."""
    assert Path("/bin/sh").exists()
    (root / "bin").mkdir()
    file = write_program(root, 7).rename(root / "bin" / "sh")
    cache = BinaryCache(10, 10)
    directory = ProcessDirectory.open(root.parent.parent, 42)
    assert directory is not None
    with directory:
        binary = cache.identify(directory, mapping_of(file, "/bin/sh"))
        hosts = cache.identify(directory, mapping_of(Path("/bin/sh").resolve(), "/bin/sh"))
    assert binary is not None
    assert (binary.path, binary.id.build_id) == (b"/bin/sh", (7).to_bytes(20, "big"))
    assert hosts is None, "a mapping of the host's file is not named by the container's"
    cache.close()


def test_descriptors_are_bounded_and_given_back(root: Path) -> None:
    before = open_descriptors()
    cache = BinaryCache(binaries_max=100, open_max=7)
    binaries = [identify(cache, write_program(root, number)) for number in range(1, 24)]
    assert open_descriptors() == before + 7
    newest, oldest = binaries[-1], binaries[0]
    assert newest is not None and oldest is not None
    assert cache.open_binary(oldest.id) is None
    fd = cache.open_binary(newest.id)
    assert fd is not None
    assert os.pread(fd, 4, 0) == b"\x7fELF"
    os.close(fd)
    cache.release(newest.id)
    assert open_descriptors() == before + 6
    cache.close()
    assert open_descriptors() == before


def test_a_file_that_is_not_kept_open_is_found_again_while_it_is_mapped_and_unchanged(root: Path) -> None:
    cache = BinaryCache(binaries_max=2, open_max=0, proc_root=root.parent.parent)
    file = write_program(root, 7)
    binary = identify(cache, file)
    assert binary is not None
    before = open_descriptors()
    fd = cache.open_binary(binary.id)
    assert fd is not None and os.pread(fd, 4, 0) == b"\x7fELF"
    os.close(fd)
    file.write_bytes(b"another")
    assert cache.open_binary(binary.id) is None
    file.unlink()
    assert cache.open_binary(binary.id) is None
    (root.parent / "root").rmdir()
    root.parent.rmdir()
    assert cache.open_binary(binary.id) is None
    assert open_descriptors() == before
    for number in (23, 31):
        root.mkdir(parents=True, exist_ok=True)
        identify(cache, write_program(root, number))
    assert cache._mapped.keys() == cache._files.keys()


def test_a_rewritten_file_is_another_binary(root: Path) -> None:
    cache = BinaryCache(10, 10)
    file = write_program(root, 7)
    before = identify(cache, file)
    stat = file.stat()
    file.write_bytes(file.read_bytes().replace(b"\xc3" * 64, b"\x90" * 64))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # size and mtime as they were
    after = identify(cache, file)
    assert before is not None and after is not None
    assert before.id.build_id == after.id.build_id
    assert before.id.content_hash != after.id.content_hash
    cache.close()


def test_a_file_cut_and_rewritten_all_the_time_harms_nothing(root: Path) -> None:
    file = write_program(root, 7)
    whole = file.read_bytes()
    is_done = threading.Event()

    def rewrite() -> None:
        while not is_done.is_set():
            os.truncate(file, 0)
            file.write_bytes(whole)

    writer = threading.Thread(target=rewrite)
    writer.start()
    cache = BinaryCache(10, 10)
    missed = 0
    try:
        for _ in range(1000):
            binary = identify(cache, file)
            missed += binary is None
            assert binary is None or binary.id.build_id in (b"", (7).to_bytes(20, "big"))
    finally:
        is_done.set()
        writer.join()
        cache.close()
    assert cache.unreadable + cache.changed == missed


def test_a_sparse_giant_is_identified_at_once(root: Path) -> None:
    file = write_program(root, 7)
    os.truncate(file, 8 << 40)
    cache = BinaryCache(10, 10)
    binary = identify(cache, file)
    assert binary is not None
    assert (binary.size_bytes, binary.id.build_id) == (8 << 40, (7).to_bytes(20, "big"))
    cache.close()


def test_what_cannot_be_opened_is_counted(root: Path) -> None:
    os.mkfifo(root / "fifo")
    cache = BinaryCache(10, 10)
    assert identify(cache, root / "fifo") is None
    assert cache.unreadable == 1
