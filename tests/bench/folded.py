# SPDX-License-Identifier: Apache-2.0
"""A diff of a large folded text: the memory of a process that reads it, stack by stack as it is written (row F20 of the reports).

A million distinct stacks of 40 frames are 600 MB of text; difffolded.pl and flamegraph.pl hold all of it, in several copies.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from server.interop.folded import FoldedLines, import_text
from server.interop.folded_diff import FoldedSide, folded_diff
from tests.bench.report import MIB, SECONDS, Line, bounded, told
from tests.bench.timing import BenchError, Effort

STACKS, FRAMES = 1_000_000, 40
MOST_BYTES = 500e6
MOST_S = 280


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench; in a process of its own, whose memory is that of this alone."""
    count = effort.rows(STACKS)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.folded", str(count)], capture_output=True, text=True, timeout=MOST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{count:,} stacks took more than {MOST_S} s") from error
    if done.returncode:
        raise BenchError(f"{count:,} stacks: {done.stderr[-300:]}")
    said = json.loads(done.stdout)
    yield bounded(f"memory to compare {said['stacks']:,} distinct stacks of {FRAMES} frames", said["peak_bytes"], MIB, MOST_BYTES)
    yield told("the same, CPU", said["cpu_s"], SECONDS)


def lines(count: int) -> Iterator[str]:
    """So many distinct stacks, leaves close to one another."""
    for i in range(count):
        frames = ";".join(f"m::f{depth}_{(i >> (38 - depth)) % 1000}" for depth in range(FRAMES - 1))
        yield f"main;{frames} {i % 7 + 1}\n"


def _measure(count: int) -> None:
    answer = folded_diff(FoldedSide("a", FoldedLines(lines(count))), FoldedSide("b", import_text("main;m::f0_0 1\n")))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    stacks = int((answer.diff.a.own > 0).sum())
    print(json.dumps({"stacks": stacks, "peak_bytes": peak_bytes, "cpu_s": time.process_time()}))


if __name__ == "__main__":
    _measure(int(sys.argv[1]))
