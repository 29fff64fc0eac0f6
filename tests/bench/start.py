# SPDX-License-Identifier: Apache-2.0
"""How long `emberwatch up` takes to sample, the first time and the second; what the two sides weigh after their imports."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.report import MIB, SECONDS, Line, bounded, told
from tests.bench.timing import BenchError, Effort

READY_S = 60.0
SAMPLING, READY = b"sampling since", b"ready "
_WEIGH = """
import importlib, re, sys
importlib.import_module(sys.argv[1])
print(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def run(_: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    for side, module in (("agent", "agent.runner.collector"), ("server", "server.app")):
        yield told(f"{side}, resident after its imports", _weight_bytes(module), MIB)
    with tempfile.TemporaryDirectory() as folder:
        yield bounded("emberwatch up, nothing prepared: until its first window can be seen", _up_s(Path(folder), READY), SECONDS, 30)
        yield bounded("emberwatch up, second time: until it samples", _up_s(Path(folder), SAMPLING), SECONDS, 10)


def _weight_bytes(module: str) -> int:
    """As the agent's command starts it: one arena, no threads of OpenBLAS."""
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _WEIGH, module], env=environment, capture_output=True, check=True)
    return int(done.stdout) << 10


def _up_s(folder: Path, until: bytes) -> float:
    """Seconds from the start of the command to a line that has `until` in it; the command is then stopped."""
    environment = os.environ | {"EMBERWATCH_DATA_DIR": str(folder)}
    command = [sys.executable, "-m", "server.cli", "up", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    began_s = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            _await_line(process, until)
            return time.monotonic() - began_s
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()


def _await_line(process: "subprocess.Popen[bytes]", until: bytes) -> None:
    assert process.stdout is not None
    said, end_s = b"", time.monotonic() + READY_S
    while until not in said:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end_s - time.monotonic()))
        read = os.read(process.stdout.fileno(), 65536) if ready else b""
        if not read:
            raise BenchError(f"emberwatch up did not say {until.decode()!r}: {said.decode(errors='replace')[-300:]}")
        said += read
