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

from server.interop import folded_diff
from server.interop.folded import FoldedLines, import_text
from server.interop.folded_diff import FoldedSide
from tests.bench.report import SECONDS, Line, Unit, bounded, told
from tests.bench.timing import BenchError, Effort

STACKS, FRAMES = 1_000_000, 40
MOST_BYTES = 500e6
MB = Unit("MB", 1e6, 1)
MOST_S = 140


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench; each in a process of its own, whose memory is that of this alone."""
    count = effort.rows(STACKS)
    what = f"{count:,} distinct stacks of {FRAMES} frames"
    merged, whole = _measured("merge", count), _measured("compare", count)
    yield bounded(f"memory to merge {what}", merged["peak_bytes"], MB, MOST_BYTES)
    yield told("the same, CPU", merged["cpu_s"], SECONDS)
    yield told("memory to compare them with a small file", whole["peak_bytes"], MB)
    yield told("the same, CPU", whole["cpu_s"], SECONDS)


def _measured(task: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.folded", task, str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{task} of {count:,} stacks took more than {MOST_S} s") from error
    if done.returncode:
        raise BenchError(f"{task} of {count:,} stacks: {done.stderr[-300:]}")
    said: dict[str, float] = json.loads(done.stdout)
    if said["stacks"] != count:
        raise BenchError(f"{said['stacks']:.0f} of {count} stacks are there")
    return said


def lines(count: int) -> Iterator[str]:
    """So many distinct stacks, leaves close to one another."""
    for i in range(count):
        frames = ";".join(f"m::f{depth}_{(i >> (38 - depth)) % 1000}" for depth in range(FRAMES - 1))
        yield f"main;{frames} {i % 7 + 1}\n"


def _measure(task: str, count: int) -> None:
    side = FoldedSide("a", FoldedLines(lines(count)))
    if task == "merge":
        nodes, _ = folded_diff._side(folded_diff._Prefixes(with_threads=True), side)
        stacks = int(nodes.size)
    else:
        answer = folded_diff.folded_diff(side, FoldedSide("b", import_text("main;m::f0_0 1\n")))
        stacks = int((answer.diff.a.own > 0).sum())
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps({"stacks": stacks, "peak_bytes": peak_bytes, "cpu_s": time.process_time()}))


if __name__ == "__main__":
    _measure(sys.argv[1], int(sys.argv[2]))
