# SPDX-License-Identifier: Apache-2.0
"""`perf record -a -g` as a peer that can be switched on and off."""

import os
import re
import select
import shutil
import signal
import subprocess
from pathlib import Path

from tests.bench.timing import BenchError, cpu_s

_ANSWER_S = 10.0


class PerfRecord:
    """Runs from start to stop, for so many seconds at most; takes samples only while enabled."""

    def __init__(self, rate_hz: int, folder: Path, most_s: float, call_graph: str = "fp") -> None:
        if shutil.which("perf") is None:
            raise BenchError("perf is not installed (apt-get install linux-perf)")
        theirs, self._commands = os.pipe()
        self._answers, answering = os.pipe()
        command = [
            "perf",
            "record",
            "-F",
            str(rate_hz),
            "-a",
            "--call-graph",
            call_graph,
            "-D",
            "-1",
            "--control",
            f"fd:{theirs},{answering}",
        ]
        self._process = subprocess.Popen(
            [*command, "-o", folder / "perf.data", "--", "sleep", str(most_s)],
            pass_fds=[theirs, answering],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(answering)

    def enable(self) -> None:
        """Samples are taken when this returns."""
        self._command("enable")

    def disable(self) -> None:
        """No more samples are taken when this returns."""
        self._command("disable")

    def cpu_s(self) -> float:
        """CPU time of perf itself so far."""
        return cpu_s(self._process.pid)

    def stop(self) -> int:
        """End it; gives the samples it wrote."""
        self._command("stop")
        _, said = self._process.communicate(timeout=60)
        self.close()
        samples = re.search(rb"\((\d+) samples\)", said)
        if samples is None:
            raise BenchError(f"perf record wrote no samples: {said.decode(errors='replace')[-300:]}")
        return int(samples[1])

    def close(self) -> None:
        """Leave nothing behind, whatever happened."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for descriptor in (self._commands, self._answers):
            if descriptor >= 0:
                os.close(descriptor)
        self._commands = self._answers = -1

    def _command(self, word: str) -> None:
        os.write(self._commands, word.encode() + b"\n")
        ready, _, _ = select.select([self._answers], [], [], _ANSWER_S)
        if not ready or not os.read(self._answers, 4096).startswith(b"ack"):
            raise BenchError(f"perf record does not obey {word!r}")
