# SPDX-License-Identifier: Apache-2.0
"""Tests of what the decoding child does with one file, and of its limits."""

import os
import subprocess
import sys
from pathlib import Path

from agent.records.unwind import TableMiss, UnwindTable
from agent.unwind.decode_child import packed_table_of
from agent.unwind.table_file import unpack_table
from tests.support.eh_frames import program_file, section

DIGEST = bytes(16)
GOOD = program_file(section((0x1000, 64, b"\x41\x0e\x10")))


def test_a_table_or_a_reason(tmp_path: Path) -> None:
    for content, expected in ((GOOD, None), (GOOD[:-20], TableMiss.MALFORMED)):
        (tmp_path / "file").write_bytes(content)
        source = os.open(tmp_path / "file", os.O_RDONLY)
        found = unpack_table(packed_table_of(source, DIGEST), DIGEST)
        os.close(source)
        assert isinstance(found, UnwindTable) if expected is None else found is expected


def test_what_cannot_be_read_is_a_reason() -> None:
    reader, writer = os.pipe()
    assert unpack_table(packed_table_of(reader, DIGEST), DIGEST) is TableMiss.UNREADABLE
    os.close(reader)
    os.close(writer)


def test_nothing_of_the_agent_but_what_it_needs_is_loaded() -> None:
    script = "import sys, agent.unwind.decode_child; print([m for m in sys.modules if m.split('.')[0] in ('grpc', 'agent', 'bcc')])"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert "grpc" not in loaded
    assert "bcc" not in loaded
    assert "agent.kernel" not in loaded
