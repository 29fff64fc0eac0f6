# SPDX-License-Identifier: Apache-2.0
"""Tests of the jailed child that makes tables, through the side that starts it."""

import os
import sys
from pathlib import Path

import pytest

from agent.records.unwind import TableMiss, UnwindTable
from agent.unwind.decoder import DecodeJob, decode_files
from agent.unwind.table_file import unpack_table
from tests.support.eh_frames import program_file, section

FUNCTIONS = [(0x1000 + 64 * index, 64, b"\x41\x0e\x10") for index in range(7)]
# Answers the first file, then ends by a signal at the second; started with one file alone it answers.
DYING = (
    "import os, sys; files = sys.argv[3:]\nos.write(int(files[0].split(':')[1]), b'first')\nif len(files) > 1: os.kill(os.getpid(), 9)\n"
)


def decode_all(*contents: bytes, tmp_path: Path) -> list[UnwindTable | TableMiss]:
    jobs = []
    for number, content in enumerate(contents):
        path = tmp_path / str(number)
        path.write_bytes(content)
        jobs.append(DecodeJob(os.open(path, os.O_RDONLY), bytes((number,)) * 16))
    try:
        return [unpack_table(packed, job.digest) for job, packed in zip(jobs, decode_files(jobs), strict=True)]
    finally:
        for job in jobs:
            os.close(job.source)


def test_each_file_has_its_own_answer(tmp_path: Path) -> None:
    good = program_file(section(*FUNCTIONS))
    tables = decode_all(good, b"#!/bin/sh\n", good[:-20], program_file(section()), good, tmp_path=tmp_path)
    assert isinstance(tables[0], UnwindTable)
    assert isinstance(tables[4], UnwindTable)
    assert len(tables[0].rules) == 15  # two rows a function, and the end
    assert tables[1:4] == [TableMiss.NOT_SUPPORTED, TableMiss.MALFORMED, TableMiss.NO_RULES]


def test_more_files_than_one_child_takes(tmp_path: Path) -> None:
    good = program_file(section(*FUNCTIONS))
    assert all(isinstance(table, UnwindTable) for table in decode_all(*[good] * 17, tmp_path=tmp_path))


def test_a_file_that_ends_the_child_costs_only_itself(tmp_path: Path) -> None:
    jobs = [DecodeJob(0, bytes(16)) for _ in range(3)]
    answers = decode_files(jobs, program=(sys.executable, "-I", "-S", "-c", DYING))
    assert answers[0] == answers[2] == b"first"
    assert unpack_table(answers[1], bytes(16)) is TableMiss.TOO_LARGE


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("raise SystemExit(15)", TableMiss.FAILED),
        ("raise SystemExit(1)", TableMiss.MALFORMED),
        ("pass", TableMiss.MALFORMED),
        ("import time; time.sleep(60)", TableMiss.TOO_LARGE),
    ],
)
def test_a_child_without_an_answer_is_a_reason(script: str, expected: TableMiss) -> None:
    answers = decode_files([DecodeJob(0, bytes(16))], 0.3, (sys.executable, "-I", "-S", "-c", script))
    assert [unpack_table(answer, bytes(16)) for answer in answers] == [expected]


def test_a_program_that_cannot_be_started_is_a_reason() -> None:
    answers = decode_files([DecodeJob(0, bytes(16))] * 2, program=("/nowhere",))
    assert [unpack_table(answer, bytes(16)) for answer in answers] == [TableMiss.FAILED] * 2


def test_a_giant_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "giant"
    path.write_bytes(program_file(section(*FUNCTIONS)))
    os.truncate(path, 1 << 42)
    source = os.open(path, os.O_RDONLY)
    try:
        assert isinstance(unpack_table(decode_files([DecodeJob(source, bytes(16))])[0], bytes(16)), UnwindTable)
    finally:
        os.close(source)
