# SPDX-License-Identifier: Apache-2.0
"""Has unwind tables made by a jailed child (decode_child.py): several files at a time, for starting it costs more than most files.

A file that ends the child costs only itself: the files that were waiting behind it are tried again without it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from agent.jail import NOBODY
from agent.records.unwind import TableMiss
from agent.unwind.decode_child import MAX_FILES, ChildExit
from agent.unwind.table_file import MAX_PACKED_BYTES, pack_miss

TIMEOUT_S = 60.0
"""For all files of a child. Its CPU time is bounded by itself."""
_PROGRAM = (sys.executable, "-I", "-m", "agent.unwind.decode_child")
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """A file to make a table of. The descriptor stays the caller's."""

    source: int
    digest: bytes
    """identity_digest of the binary."""


def decode_files(jobs: Sequence[DecodeJob], timeout_s: float = TIMEOUT_S, program: Sequence[str] = _PROGRAM) -> list[bytes]:
    """Packed tables or packed reasons, in the order of `jobs`, not checked; blocks until all are done."""
    answers: list[bytes] = []
    while len(answers) < len(jobs):
        some = jobs[len(answers) : len(answers) + MAX_FILES]
        answers += _run(some, timeout_s, program)
    return answers


def _run(jobs: Sequence[DecodeJob], timeout_s: float, program: Sequence[str]) -> list[bytes]:
    """Answers of the first jobs: one at least, up to and with the one that ended the child."""
    targets: list[int] = []
    try:
        for _ in jobs:
            targets.append(os.memfd_create("unwind-table", os.MFD_CLOEXEC))
        status = _wait(jobs, targets, timeout_s, program)
        answers = []
        for job, target in zip(jobs, targets, strict=True):
            answer = os.pread(target, MAX_PACKED_BYTES, 0)
            if not answer or (status != ChildExit.DONE and os.lseek(target, 0, os.SEEK_END) == MAX_PACKED_BYTES):
                answers.append(pack_miss(_miss(status), job.digest))
                break
            answers.append(answer)
        return answers
    except OSError:
        return [pack_miss(TableMiss.FAILED, jobs[0].digest)]
    finally:
        for target in targets:
            os.close(target)


def _wait(jobs: Sequence[DecodeJob], targets: Sequence[int], timeout_s: float, program: Sequence[str]) -> int | None:
    """Exit status of the child, negative for a signal; None when it took too long and was ended."""
    files = [f"{job.source}:{target}:{job.digest.hex()}" for job, target in zip(jobs, targets, strict=True)]
    descriptors = (*(job.source for job in jobs), *targets)
    null = subprocess.DEVNULL
    command = [*program, str(NOBODY), str(NOBODY), *files]
    with subprocess.Popen(command, pass_fds=descriptors, stdin=null, stdout=null, stderr=null, env=_ENVIRONMENT, cwd="/") as child:
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            return None


def _miss(status: int | None) -> TableMiss:
    """What it means that the child left no answer."""
    if status is None or status < 0:
        return TableMiss.TOO_LARGE
    return TableMiss.FAILED if status == ChildExit.JAIL else TableMiss.MALFORMED
