# SPDX-License-Identifier: Apache-2.0
"""An answer that cannot be written is told in words, and before the work where it can be known."""

import subprocess
import sys
from pathlib import Path

import pytest

from server.cli.formats import Format
from server.cli.output import try_output, write_answer
from server.errors import ServerError

WRITE = """
from server.cli.output import *
try:
    write_answer(b'main 7\\n', Format.FOLDED, None)
except ServerError as error:
    sys.exit(str(error))
"""


def test_file_holds_the_answer(tmp_path: Path) -> None:
    write_answer(b"main;caf\xc3\xa9 7\n", Format.FOLDED, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"main;caf\xc3\xa9 7\n"


def test_file_that_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"cannot write to .*/absent/out: No such file or directory"):
        try_output(tmp_path / "absent" / "out")
    try_output(tmp_path / "out")
    try_output(None)


def test_full_disk_below_a_file() -> None:
    with pytest.raises(ServerError, match="cannot write to /dev/full: No space left on device"):
        write_answer(b"main 7\n", Format.FOLDED, Path("/dev/full"))


def test_full_disk_below_standard_output_leaves_no_traceback() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", WRITE], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, "cannot write to standard output: No space left on device\n")
