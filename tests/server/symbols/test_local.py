# SPDX-License-Identifier: Apache-2.0
"""Files of this host: taken when they are the very ones, left alone in every other case."""

import hashlib
import os
import shutil
import stat
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from agent.process.elf_header import read_identity
from emberwatch.v1 import batch_pb2 as pb
from server.store.protocol import BinaryInfo
from server.symbols.local import content_hash, open_sources
from server.symbols.sources import close_all
from tests.server.symbols.programs import compile_program, describe, run_tool


def count(binary: BinaryInfo, *roots: Path) -> int:
    sources = open_sources(binary, roots)
    close_all(sources)
    return len(sources)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_program("int main(void) { return 7; }", tmp_path / "p", "-Wl,--build-id=0x1234567890abcdef")


def hash_of(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return content_hash(descriptor)
    finally:
        os.close(descriptor)


def test_content_hash_by_the_words_of_the_proto(tmp_path: Path) -> None:
    """Three segments, two of them code, written by hand; the second reaches over the MiB."""
    headers = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, 0x200, 0x200, 0x1000)  # PT_LOAD r--
    headers += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x1000, 0, 0x300, 0x300, 0x1000)  # PT_LOAD r-x
    headers += struct.pack("<IIQQQQQQ", 1, 5, 0x2000, 0x9000, 0, 2 << 20, 2 << 20, 0x1000)  # PT_LOAD r-x
    header = b"\x7fELF\2\1\1".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 3, 64, 0, 0)
    data = bytearray(os.urandom(0x2000 + (2 << 20)))
    data[: len(header) + len(headers)] = header + headers
    path = tmp_path / "three"
    path.write_bytes(data)
    code = data[0x1000:0x1300] + data[0x2000 : 0x2000 + (1 << 20) - 0x300]
    expected = hashlib.blake2b(headers + struct.pack("<Q", len(data)) + code, digest_size=16).digest()
    assert hash_of(path) == expected


@pytest.mark.parametrize("options", [(), ("-no-pie",), ("-static",), ("-s",), ("-Wl,-z,noseparate-code",)])
def test_agent_and_server_hash_alike(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = compile_program("int main(void) { return 7; }", tmp_path / "p", *options)
    cut, empty, text = tmp_path / "cut", tmp_path / "empty", tmp_path / "text"
    cut.write_bytes(program.read_bytes()[:0x500])
    empty.write_bytes(b"")
    text.write_bytes(b"#!/bin/sh\nexit 7\n" * 23)
    for path in (program, cut, empty, text):
        descriptor = os.open(path, os.O_RDONLY)
        seen = read_identity(lambda offset, size: os.pread(descriptor, size, offset), path.stat().st_size)  # noqa: B023
        assert content_hash(descriptor) == seen.id.content_hash, path.name
        os.close(descriptor)


def test_the_very_file_is_found(program: Path) -> None:
    assert count(describe(program)) == 1


def test_another_file_at_the_path_is_not(program: Path) -> None:
    """A25: the path is the container's; here lies another file with the same build id and size."""
    binary = describe(program)
    data = bytearray(program.read_bytes())
    code = next(segment for segment in binary.segments if segment[4] & 1)
    data[code[0]] ^= 0xFF
    program.write_bytes(data)
    assert describe(program).build_id == binary.build_id and program.stat().st_size == binary.size_bytes
    assert count(binary) == 0


@pytest.mark.parametrize(
    "path", [b"", b"relative/p", b"[vdso]", b"/nowhere/p", b"/proc/self/mem", b"/dev/zero", b"/a\0b", b"/", b"/x" * 5000]
)
def test_paths_that_lead_to_no_file(program: Path, path: bytes) -> None:
    assert count(replace(describe(program), path=path)) == 0


def test_a_fifo_at_the_path_does_not_hang(program: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert count(replace(describe(program), path=os.fsencode(fifo), size_bytes=0)) == 0


def test_kernels_are_not_looked_for_by_path(program: Path) -> None:
    assert count(replace(describe(program), kind=pb.BINARY_KIND_KERNEL)) == 0


def test_debug_file_by_build_id(program: Path, tmp_path: Path) -> None:
    binary = replace(describe(program), path=b"/not/here")
    root = tmp_path / "debug"
    place = root / ".build-id/12/34567890abcdef.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(program, place)
    assert count(binary, tmp_path / "missing", root) == 1
    assert count(replace(binary, path=os.fsencode(program)), root) == 2
    assert count(replace(binary, build_id_kind=pb.BUILD_ID_KIND_GO), root) == 0
    assert count(replace(binary, build_id=b"\x12"), root) == 0


@pytest.mark.parametrize("link", ["p.debug", "/usr/bin/p.debug"])
def test_debug_file_by_the_link_in_the_binary(tmp_path: Path, link: str) -> None:
    """The name is data of whoever made the binary: only its directory inside the root is looked into, whatever it says."""
    program, debug, root = tmp_path / "p", tmp_path / "p.debug", tmp_path / "debug"
    compile_program("int main(void) { return 7; }", program, "-Wl,--build-id=none")
    run_tool("objcopy", "--only-keep-debug", program, debug)
    run_tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)
    if "/" in link:
        data = program.read_bytes()
        program.write_bytes(data.replace(b"p.debug\0", b"../.bug\0"))
    place = root / str(tmp_path).lstrip("/") / "p.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(debug, place)
    assert count(describe(program), root) == (1 if "/" in link else 2)
    assert count(describe(program)) == 1


def test_link_with_other_bytes_or_to_itself_is_passed_over(tmp_path: Path) -> None:
    """C23: a root that holds the binary itself under the name of the link, then a file that is not the one whose CRC stands in it."""
    program, root = tmp_path / "root" / "p", tmp_path / "root"
    root.mkdir()
    compile_program("int main(void) { return 7; }", program, "-Wl,--build-id=none")
    debug = root / "q.debug"
    shutil.copy(program, debug)
    run_tool("objcopy", f"--add-gnu-debuglink={debug}", program)
    inside = root / str(root).lstrip("/")
    inside.mkdir(parents=True)
    os.link(program, inside / "q.debug")
    assert count(describe(program), root) == 1
    (inside / "q.debug").unlink()
    (inside / "q.debug").write_bytes(debug.read_bytes()[:-1] + b"x")
    assert count(describe(program), root) == 1
    shutil.copy(debug, inside / "q.debug")
    assert count(describe(program), root) == 2
