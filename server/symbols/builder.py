# SPDX-License-Identifier: Apache-2.0
"""Has a table made by a jailed child and takes it into the cache (the child's side: server/symbols/build_child.py).

A child that dies, hangs or answers nonsense gets one second try, for it may have met an overloaded machine; that one leaves debug
data alone, so that the names of the symbol tables stay. Then the binary is filed as refused with the reason, and the next one has
its turn.
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from server.symbols.build_job import Job
from server.symbols.build_result import MAX_ANSWER_BYTES, BuildResult, BuildStatus, result_from_json
from server.symbols.identity import BinaryKey

log = logging.getLogger(__name__)

TIMEOUT_S = 120.0
"""Wall time; the child's CPU time is bounded by itself to half of it (CPU_S)."""
ATTEMPTS = 2
COMMAND = (sys.executable, "-P", "-m", "server.symbols.build_child")
"""-P: nothing is imported from the directory that the server happens to run in."""


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """What to make a table of."""

    key: BinaryKey
    format: int
    """UploadFormat of the sources."""
    sources: Sequence[int]
    """Open descriptors: the binary first, then files that add to it. They stay the caller's."""
    supplement: int | None = None
    """Open descriptor of the common file that dwz moved strings and entries of the debug file to (.gnu_debugaltlink)."""
    splits: int | None = None
    """Open descriptor of a file with all .dwo and .dwp files one after another."""
    split_sizes: tuple[int, ...] = ()
    kallsyms: int | None = None
    """Open descriptor of the list of the kernel or module that the sources are debug files of."""


def build_table(order: BuildOrder, into: Path, command: Sequence[str] = COMMAND) -> tuple[BuildResult, Path | None]:
    """Make the table as a new file in the directory `into`.

    The path is given for OK only, and is then the caller's to move or delete. OK may still come with a reason why debug data
    was not used.
    """
    result = BuildResult(BuildStatus.MALFORMED, "never tried")
    for attempt in range(ATTEMPTS):
        descriptor, name = tempfile.mkstemp(suffix=".part", dir=into)
        path = Path(name)
        try:
            answer = _run(order, descriptor, command, with_debug_data=attempt == 0)
            if answer.result is not None and answer.result.status == BuildStatus.OK:
                os.fsync(descriptor)
                return replace(answer.result, debug_reason=f"{result.status}: {result.reason}") if attempt else answer.result, path
        finally:
            os.close(descriptor)
        path.unlink()
        if answer.result is not None:
            return answer.result, None
        result = BuildResult(answer.status, answer.reason)
        log.warning("symbol build died attempt=%d binary=%s reason=%s", attempt + 1, order.key.digest, answer.reason)
    return result, None


@dataclass(frozen=True, slots=True)
class _Answer:
    result: BuildResult | None
    """None when the child gave no answer that makes sense; then the rest tells how it ended."""
    status: BuildStatus = BuildStatus.MALFORMED
    reason: str = ""


def _run(order: BuildOrder, output: int, command: Sequence[str], *, with_debug_data: bool) -> _Answer:
    job = Job(
        key=order.key,
        format=order.format,
        sources=tuple(order.sources),
        output=output,
        supplement=order.supplement,
        splits=order.splits,
        split_sizes=order.split_sizes,
        kallsyms=order.kallsyms,
        with_debug_data=with_debug_data,
    )
    more = [descriptor for descriptor in (order.supplement, order.splits, order.kallsyms) if descriptor is not None]
    environment = {"OPENBLAS_NUM_THREADS": "1", "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            [*command, job.to_json()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            pass_fds=(*order.sources, *more, output),
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return _Answer(None, BuildStatus.LIMIT, f"not done in {TIMEOUT_S:.0f} s")
    except OSError as error:
        return _Answer(None, BuildStatus.LIMIT, f"the symbol builder could not be started: {error}")
    result = result_from_json(done.stdout[:MAX_ANSWER_BYTES]) if done.returncode == 0 else None
    if result is not None:
        return _Answer(result)
    if done.returncode < 0:
        return _Answer(None, BuildStatus.LIMIT, f"the symbol builder was killed by signal {-done.returncode}")
    last_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return _Answer(None, BuildStatus.MALFORMED, f"the symbol builder ended with {done.returncode}: {last_line[:200]}")
