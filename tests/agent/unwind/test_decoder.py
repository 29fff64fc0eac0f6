# SPDX-License-Identifier: Apache-2.0
"""Tests of the jailed processes that make tables, through the side that starts them."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.records.unwind import TableMiss, UnwindTable
from agent.unwind.decoder import Decoder
from agent.unwind.table_file import unpack_table
from tests.support.eh_frames import program_file, section

GOOD = program_file(section(*((0x1000 + 64 * index, 64, b"\x41\x0e\x10") for index in range(7))))
DIGEST = bytes(range(16))
# What a child may do instead of its work, once it has the request; `status` is what it then says of the file.
ANSWERS = "import socket, struct, sys; control = socket.socket(fileno=int(sys.argv[1]))\nwhile socket.recv_fds(control, 16, 2)[1]: "


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    made = Decoder()
    yield made
    made.close()


def decode(decoder: Decoder, path: Path) -> UnwindTable | TableMiss:
    source = os.open(path, os.O_RDONLY)
    try:
        return unpack_table(decoder.decode(source, DIGEST), DIGEST)
    finally:
        os.close(source)


def decode_with(script: str, timeout_s: float = 60.0) -> UnwindTable | TableMiss:
    made = Decoder(timeout_s, (sys.executable, "-I", "-S", "-c", script))
    try:
        return decode(made, Path(sys.executable))
    finally:
        made.close()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"#!/bin/sh\n", TableMiss.NOT_SUPPORTED),
        (b"", TableMiss.NOT_SUPPORTED),
        (GOOD[:-20], TableMiss.MALFORMED),
        (program_file(section()), TableMiss.NO_RULES),
    ],
)
def test_a_file_without_a_table_has_a_reason(decoder: Decoder, tmp_path: Path, content: bytes, expected: TableMiss) -> None:
    (tmp_path / "file").write_bytes(content)
    assert decode(decoder, tmp_path / "file") is expected


def test_one_child_makes_all_tables(decoder: Decoder, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    decode(decoder, tmp_path / "file")
    child = decoder._child
    for _ in range(7):
        table = decode(decoder, tmp_path / "file")
        assert isinstance(table, UnwindTable)
        assert len(table.rules) == 15  # two rows a function, and the end
    assert decoder._child is child is not None and child.poll() is None


def test_a_giant_file_is_not_read(decoder: Decoder, tmp_path: Path) -> None:
    (tmp_path / "giant").write_bytes(GOOD)
    os.truncate(tmp_path / "giant", 1 << 42)
    assert isinstance(decode(decoder, tmp_path / "giant"), UnwindTable)


def test_what_is_no_file_is_a_reason(decoder: Decoder) -> None:
    reader, writer = os.pipe()
    assert unpack_table(decoder.decode(reader, DIGEST), DIGEST) is TableMiss.UNREADABLE
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (15, TableMiss.FAILED),  # no jail
        (1, TableMiss.MALFORMED),  # an exception
        (-11, TableMiss.MALFORMED),  # SIGSEGV
        (-24, TableMiss.TOO_LARGE),  # SIGXCPU
        (-9, TableMiss.FAILED),  # SIGKILL
    ],
)
def test_how_a_process_ended_is_a_reason(status: int, expected: TableMiss) -> None:
    assert decode_with(f"{ANSWERS}control.send(struct.pack('<i', {status}))") is expected


@pytest.mark.parametrize("script", ["pass", "raise SystemExit(15)", f"{ANSWERS}control.send(b'?')", f"{ANSWERS}break"])
def test_a_child_that_does_not_answer_is_a_failure(script: str) -> None:
    assert decode_with(script) is TableMiss.FAILED


def test_a_child_that_takes_too_long_is_ended() -> None:
    began_s = time.monotonic()
    assert decode_with("import time; time.sleep(60)", timeout_s=0.2) is TableMiss.FAILED
    assert time.monotonic() - began_s < 50


def test_a_program_that_cannot_be_started_is_a_failure() -> None:
    decoder = Decoder(program=("/nowhere",))
    assert decode(decoder, Path(sys.executable)) is TableMiss.FAILED


def test_a_child_that_went_for_want_of_work_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    decoder = Decoder()
    decoder.start()
    assert decoder._child is not None
    decoder._child.kill()
    assert isinstance(decode(decoder, tmp_path / "file"), UnwindTable)
    child = decoder._child
    decoder.close()
    assert child.poll() is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_the_child_has_given_up_its_rights(decoder: Decoder, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    decode(decoder, tmp_path / "file")
    assert decoder._child is not None
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{decoder._child.pid}/status").read_text().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65534"] * 4
    assert (status["Groups"].strip(), status["NoNewPrivs"], int(status["CapEff"], 16)) == ("", "1", 0)
