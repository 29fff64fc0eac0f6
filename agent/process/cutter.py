# SPDX-License-Identifier: Apache-2.0
"""Makes the upload of a binary: its ELF file without program text, cut by a jailed child (upload_cut.py).

The agent hands over two descriptors and reads an exit status; it never looks at the sections itself. Whatever the file does to the child,
the agent gets a reason.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.jail import NOBODY
from agent.process.upload_cut import CutExit

_TIMEOUT_S = 120.0
_PROGRAM = "agent.process.upload_cut"
_REASONS = {
    CutExit.NO_ELF: "not an ELF64 file",
    CutExit.NO_SECTIONS: "no section table",
    CutExit.MALFORMED: "malformed ELF file",
    CutExit.TOO_LARGE: "over 2 GiB without its text",
    CutExit.IO: "could not be copied",
    CutExit.JAIL: "the cutting process could not give up its rights",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut file, or why there is none."""

    fd: int | None
    """Open for reading at its start, without a name; the caller closes it."""
    size_bytes: int
    reason: str
    """In words; "" when it worked."""


def cut_for_upload(source: int, directory: Path, timeout_s: float = _TIMEOUT_S) -> Cut:
    """Cut the file of descriptor `source` into a nameless file in `directory`; blocks until it is done (about 1 s for 300 MB)."""
    try:
        with tempfile.TemporaryFile(dir=directory) as target:
            status = _run(source, target.fileno(), timeout_s)
            if status != CutExit.DONE:
                return Cut(None, 0, _reason(status))
            size_bytes = os.fstat(target.fileno()).st_size
            fd = os.dup(target.fileno())
    except OSError as error:
        return Cut(None, 0, f"no room in {directory}: {error.strerror}")
    os.lseek(fd, 0, os.SEEK_SET)
    return Cut(fd, size_bytes, "")


def _run(source: int, target: int, timeout_s: float) -> int | None:
    """Exit status of the child, negative for a signal; None when it took too long and was ended."""
    command = [sys.executable, "-I", "-m", _PROGRAM, str(source), str(target), str(NOBODY), str(NOBODY)]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, pass_fds=(source, target), stdin=null, stdout=null, stderr=null, env={}, cwd="/") as child:
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            return None


def _reason(status: int | None) -> str:
    if status is None:
        return "cutting took too long"
    if status < 0:
        return f"cutting met a limit (signal {-status})"
    return _REASONS[CutExit(status)] if status in _REASONS else f"cutting failed with status {status}"
