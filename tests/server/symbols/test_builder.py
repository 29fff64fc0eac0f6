# SPDX-License-Identifier: Apache-2.0
"""The jailed child, seen from outside: what it makes, how it ends, what it may not do."""

import os
import sys
import time
from pathlib import Path

import pytest

from emberwatch.v1 import symbols_pb2
from server.symbols import builder
from server.symbols.build_result import BuildStatus
from server.symbols.builder import BuildOrder, build_table
from server.symbols.identity import key_of
from server.symbols.table import open_table
from tests.server.symbols.programs import compile_program, describe


@pytest.fixture
def order(tmp_path: Path) -> BuildOrder:
    program = compile_program("int main(void) { return 7; }", tmp_path / "p")
    return BuildOrder(key_of(describe(program)), symbols_pb2.UPLOAD_FORMAT_ELF, (os.open(program, os.O_RDONLY),))


def fake_child(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A child that counts its starts in a file and then does something else than building."""
    script = tmp_path / "child.py"
    script.write_text(f"import os, sys\nopen({str(tmp_path / 'starts')!r}, 'a').write('x')\n{body}\n")
    return (sys.executable, "-S", str(script))


def starts(tmp_path: Path) -> int:
    return len((tmp_path / "starts").read_text())


def test_real_child_makes_a_table(tmp_path: Path, order: BuildOrder) -> None:
    into = tmp_path / "tables"
    into.mkdir()
    result, path = build_table(order, into)
    assert (result.status, result.reason) == (BuildStatus.OK, "")
    assert path is not None and path.parent == into
    descriptor = os.open(path, os.O_RDONLY)
    assert len(open_table(descriptor, order.key)) == result.symbols > 0
    os.close(descriptor)


def test_refusal_is_an_answer_and_is_not_tried_again(tmp_path: Path, order: BuildOrder) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"<html>")
    hostile = BuildOrder(order.key, order.format, (os.open(body, os.O_RDONLY),))
    result, path = build_table(hostile, tmp_path)
    assert (result.status, path) == (BuildStatus.MALFORMED, None)
    assert "not an ELF file" in result.reason
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("os.kill(os.getpid(), 9)", BuildStatus.LIMIT, "the symbol builder was killed by signal 9"),
        ("sys.exit('no such luck')", BuildStatus.MALFORMED, "the symbol builder ended with 1: no such luck"),
        ('print(\'{"status": "ok"\')', BuildStatus.MALFORMED, "the symbol builder ended with 0: "),
        ('print(\'{"status": "fine", "reason": "", "symbols": 1}\')', BuildStatus.MALFORMED, "the symbol builder ended with 0: "),
    ],
)
def test_child_that_dies_is_tried_once_more(tmp_path: Path, order: BuildOrder, body: str, status: BuildStatus, reason: str) -> None:
    result, path = build_table(order, tmp_path, fake_child(tmp_path, body))
    assert (result.status, result.reason, path) == (status, reason, None)
    assert starts(tmp_path) == 2
    assert not list(tmp_path.glob("*.part"))


def test_child_that_hangs_is_ended(tmp_path: Path, order: BuildOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "TIMEOUT_S", 0.2)
    start = time.monotonic()
    result, _ = build_table(order, tmp_path, fake_child(tmp_path, "import time; time.sleep(60)"))
    assert result.status == BuildStatus.LIMIT
    assert starts(tmp_path) == 2
    assert time.monotonic() - start < 50


def test_second_try_can_succeed(tmp_path: Path, order: BuildOrder) -> None:
    body = (
        f"if os.path.getsize({str(tmp_path / 'starts')!r}) < 2: os.kill(os.getpid(), 9)\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'server.symbols.build_child', sys.argv[1]])"
    )
    result, path = build_table(order, tmp_path, fake_child(tmp_path, body))
    assert result.status == BuildStatus.OK and path is not None


def test_program_that_cannot_be_started_is_a_reason(tmp_path: Path, order: BuildOrder) -> None:
    result, _ = build_table(order, tmp_path, (str(tmp_path / "missing"),))
    assert result.status == BuildStatus.LIMIT
    assert "could not be started" in result.reason
