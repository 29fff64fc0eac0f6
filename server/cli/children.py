# SPDX-License-Identifier: Apache-2.0
"""The server and the agent as children of a command: started, awaited until they are ready, stopped.

A child is told a descriptor, writes one line of JSON on it when it is ready, and stops by itself when the other end closes:
so nothing is left behind even when the parent is killed.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Self

from server.errors import ServerError


@dataclass(slots=True)
class Child:
    """A running child. `facts` is what it said when it was ready."""

    name: str
    process: subprocess.Popen[bytes]
    line: socket.socket
    facts: dict[str, str | int]

    @classmethod
    def start(cls, name: str, command: list[str], timeout_s: float) -> Self:
        """Start `command` (a module of this installation and its arguments) and wait until it is ready.

        Raises ServerError when it ends or stays silent first; what it wrote on standard error has said why.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", *command, "--ready-fd", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                process_group=0,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"EMBERWATCH_SERVICE": name},
            )
        child = cls(name, process, ours, {})
        try:
            child.facts = child._await_ready(timeout_s)
        except BaseException:
            child.stop(5)
            raise
        return child

    def _await_ready(self, timeout_s: float) -> dict[str, str | int]:
        ready, _, _ = select.select([self.line], [], [], timeout_s)
        if not ready:
            raise ServerError(f"{self.name} was not ready within {timeout_s:.0f} s")
        said = self.line.recv(65536)
        if not said:
            raise ServerError(f"{self.name} ended before it was ready (exit status {self.process.wait(10)})")
        facts: dict[str, str | int] = json.loads(said)
        return facts

    def stop(self, timeout_s: float) -> int:
        """Ask the child to stop, and end it when it does not; gives its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.line.close()
        return status
