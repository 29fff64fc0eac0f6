# SPDX-License-Identifier: Apache-2.0
"""Real servers in processes of their own, and questions to their API."""

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.cli.children import Child

READY_S = 60.0

DIES_AFTER_COMMIT = """
import os, signal, sys
from server.store.sql_store import SqlStore
store = SqlStore.append
def append_and_die(self, push):
    store(self, push)
    os.kill(os.getpid(), signal.SIGKILL)
SqlStore.append = append_and_die
from server.cli.main import main
main(["serve", *sys.argv[1:]])
"""
"""A server that stores its first push durably and is killed before it can answer."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Where it listens."""

    http: str
    grpc: str
    process: "subprocess.Popen[bytes]"

    def get(self, path: str, **parameters: str) -> dict[str, Any]:
        """GET /api/v1/PATH."""
        with urllib.request.urlopen(f"http://{self.http}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            body: dict[str, Any] = json.loads(answer.read())
            return body

    def text(self, path: str, **parameters: str) -> str:
        """GET /api/v1/PATH as text."""
        with urllib.request.urlopen(f"http://{self.http}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return str(answer.read().decode())


@contextmanager
def serving(data: Path, *arguments: str, grpc: str = "127.0.0.1:0") -> Iterator[RunningServer]:
    """`emberwatch serve` on free ports until the block ends."""
    command = ["server.cli", "serve", "--data-dir", str(data), "--http", "127.0.0.1:0", "--grpc", grpc, *arguments]
    child = Child.start("emberwatch-server", command, READY_S)
    try:
        yield RunningServer(str(child.facts["http"]), str(child.facts["grpc"]), child.process)
    finally:
        child.stop(60)


@contextmanager
def serving_until_commit(data: Path, grpc: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A server that dies between the commit of its first push and the answer to it."""
    process = subprocess.Popen(
        [sys.executable, "-c", DIES_AFTER_COMMIT, "--data-dir", str(data), "--http", "127.0.0.1:0", "--grpc", grpc],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
