# SPDX-License-Identifier: Apache-2.0
"""`emberwatch record`: the whole path for some seconds, with a private server, a private agent and a store that is thrown away.

A command is started but held before exec until the agent says that it is attached, so that its first instruction is in the picture;
its whole tree is recorded until it ends.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server.cli.ask import Api
from server.cli.children import Child
from server.errors import ServerError

Progress = Callable[[str, float], None]
"""Told what runs and how much of it is done, 0 to 1."""
Ask = Callable[[Api, str, float], bytes]
"""Gets an answer for a selector and the moment (unix seconds) from which on everything was recorded."""
RECORDED_KINDS = ("cpu", "offcpu", "runqueue", "time", "lock", "syscall", "syscall_stack", "tcp", "tcp_stack", "lock_hold")
_READY_S = 60.0
_QUIET = ("--log-level", "warning")
_CACHE = "/var/cache/emberwatch"
"""Of the agents of all recordings: the first one made the unwind tables of the host's libraries, the next has them at once."""
_NAMES_S = 30.0
_HOLD = 'read -r _ <"$0" && exec "$@"'
"""A shell costs less than a sample, and when we are gone the pipe ends and the command never starts."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record. `duration_s` None means: until the command ends."""

    kind: str
    duration_s: float | None
    pids: tuple[int, ...]
    command: tuple[str, ...]
    rate_hz: int


def record(wanted: Recording, ask: Ask, progress: Progress) -> bytes:
    """Record, and give the answer `ask` gets from the private server. Raises ServerError when a part fails."""
    if os.geteuid() != 0:
        raise ServerError("recording loads eBPF programs and needs root")
    with tempfile.TemporaryDirectory(prefix="emberwatch-record-") as folder, _held(wanted.command, Path(folder) / "go") as held:
        command = ["server.cli", "serve", "--data-dir", f"{folder}/server", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *_QUIET]
        progress("starting", 0.0)
        began_s = time.time()
        server = Child.start("emberwatch-server", command, _READY_S)
        try:
            _sample(wanted, held, Path(folder), str(server.facts["grpc"]), progress)
            api = Api(f"http://{server.facts['http']}")
            progress("naming", 0.0)
            api.await_names(_NAMES_S)
            return ask(api, wanted.kind + "{}", began_s - 1)
        finally:
            server.stop(10)


def _sample(wanted: Recording, held: "Held | None", folder: Path, grpc: str, progress: Progress) -> None:
    pids = [*wanted.pids, *([held.process.pid] if held else [])]
    arguments = ["--server", grpc, "--data-dir", str(folder / "agent"), "--cache-dir", _CACHE, "--rate-hz", str(wanted.rate_hz), *_QUIET]
    # Somebody waits for this and it is short: every event counts, none is estimated.
    arguments += ["--kinds", wanted.kind, "--events-per-s", "0"]
    arguments += ["--pid", ",".join(map(str, pids))] if pids else []
    agent = Child.start("emberwatch-agent", ["agent.cli", "run", *arguments], _READY_S)
    try:
        if held:
            held.release()
        _wait(wanted.duration_s, held, agent, progress)
    finally:
        status = agent.stop(20)
    if status:
        raise ServerError(f"the agent ended with status {status}; what it wrote above says why")


def _wait(duration_s: float | None, held: "Held | None", agent: Child, progress: Progress) -> None:
    """Until the time is over, the command has ended, or Ctrl-C: what was seen so far is then printed."""
    began_s = time.monotonic()
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    try:
        while not interrupted:
            past_s = time.monotonic() - began_s
            if (duration_s is not None and past_s >= duration_s) or (held and held.process.poll() is not None):
                return
            if agent.process.poll() is not None:
                return
            progress("recording", past_s / duration_s if duration_s else 0.0)
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True)
class Held:
    """A command that waits for a line before it becomes itself."""

    process: subprocess.Popen[bytes]
    go: int

    def release(self) -> None:
        """Let it run."""
        os.write(self.go, b"\n")


@contextmanager
def _held(command: tuple[str, ...], pipe: Path) -> Iterator[Held | None]:
    """The command, held; ended on the way out if it still runs. Its standard output goes to our standard error."""
    if not command:
        yield None
        return
    if shutil.which(command[0]) is None:
        raise ServerError(f"cannot run {command[0]}: no such program")
    os.mkfifo(pipe, 0o600)
    go = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
    process = subprocess.Popen(["/bin/sh", "-c", _HOLD, str(pipe), *command], stdout=sys.stderr)
    try:
        yield Held(process, go)
    finally:
        os.close(go)
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
