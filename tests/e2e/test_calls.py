# SPDX-License-Identifier: Apache-2.0
"""`emberwatch record` of system calls and TCP: what a program did is what the table says, through agent, wire, store and query."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kernel import lacking_for_bpf
from tests.support.programs import Programs

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 180
_TALK = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
for _ in range(23):
    caller = socket.create_connection(("127.0.0.1", port))
    peer, _ = listener.accept()
    caller.sendall(bytes(1009))
    caller.close()
    while peer.recv(4096):
        pass
    peer.close()
print(port)
"""

pytestmark = pytest.mark.skipif(bool(lacking_for_bpf()), reason=lacking_for_bpf() or "-")


def recorded(kind: str, wanted: str, *command: str, options: tuple[str, ...] = ()) -> tuple[str, str]:
    """What is printed, and what the command itself said."""
    arguments = [sys.executable, "-m", "server.cli", "record", "--kind", kind, "--format", wanted, *options, "--", *command]
    done = subprocess.run(arguments, cwd=ROOT, input="\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def rows_of(text: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(text)["rows"]}


def test_calls_of_a_program_are_told_exactly(tmp_path: Path) -> None:
    text, _ = recorded("syscall", "json", str(Programs(tmp_path).path("calls")), str(tmp_path / "file"))
    rows = rows_of(text)
    assert (rows["getpid"]["values"]["count"], rows["nanosleep"]["values"]["count"]) == (23_000 + 46, 7)
    assert rows["openat"]["errors"][0] == {"error": "ENOENT", "count": 230}
    assert rows["nanosleep"]["values"]["ns"] >= 7 * 20_000_000
    assert rows["nanosleep"]["histograms"]["bucket"]["p50_ns"] >= 16_384_000


def test_connections_of_a_program_are_told_exactly() -> None:
    text, said = recorded("tcp", "json", sys.executable, "-c", _TALK)
    port = int(said.strip().splitlines()[-1])
    rows = rows_of(text)
    outgoing, incoming = rows[f"out 127.0.0.1:{port}"]["values"], rows[f"in :{port}"]["values"]
    assert (outgoing["connects"], outgoing["closes"], outgoing["bytes_out"]) == (23, 23, 23 * 1009)
    assert (incoming["accepts"], incoming["closes"], incoming["bytes_in"]) == (23, 23, 23 * 1009)
    assert sum(rows[f"out 127.0.0.1:{port}"]["histograms"]["rtt"]["counts"]) == outgoing["rtts"]


def test_locks_of_a_program_are_told_with_how_long_they_were_held(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    waits, _ = recorded("lock", "table", str(programs.path("mutex")))
    (row,) = [line.split() for line in waits.splitlines() if line.startswith("mutex 0x")]
    assert row[2] == "23"  # mutex, address, waits
    assert {"total", "p99", "max", "who", "holds"} <= set(waits.splitlines()[2].split()) | set(waits.splitlines()[3].split())
    text, said = recorded("lock", "json", str(programs.path("holders")), options=("--hold",))
    ((name, held),) = [(name, row) for name, row in rows_of(text).items() if name.startswith("mutex 0x")]
    least_ns, most_ns = map(int, said.strip().splitlines()[-1].split())
    assert held["values"]["count"] == 45, name
    assert least_ns <= held["values"]["ns"] <= most_ns


def test_table_is_for_people_and_of_a_program_that_was_never_sampled() -> None:
    text, _ = recorded("syscall", "table", "/bin/true")
    assert "calls, " in text.splitlines()[0]
    assert {"call", "count", "errors", "total", "mean", "p50", "p99", "max"} <= set(text.splitlines()[2].split())
