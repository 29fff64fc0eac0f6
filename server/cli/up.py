# SPDX-License-Identifier: Apache-2.0
"""`emberwatch up`: the server and an agent on this host, until Ctrl-C."""

import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from server.cli.children import Child
from server.config import Settings
from server.errors import ServerError

Say = Callable[[str], None]
_READY_S = 60.0
_QUIET = ("--log-level", "warning")
"""Steps are said by us; of the children only what went wrong."""


def run_up(settings: Settings, say: Say) -> None:
    """Start both, say each step, and stay until a signal or until one of them ends. Raises ServerError when one fails."""
    if os.geteuid() != 0:
        raise ServerError("the agent loads eBPF programs and needs root: run this as root (sudo make up)")
    stop = _stop_flag()
    began_s = time.monotonic()
    say(f"data         {Path(settings.data_dir)}")
    server = Child.start("emberwatch-server", _serve_command(settings), _READY_S)
    try:
        say(f"server       page and API on {server.facts['http']}, agents on {server.facts['grpc']}")
        say("agent        compiling its programs for this kernel")
        command = ["agent.cli", "run", "--server", str(server.facts["grpc"]), "--data-dir", f"{settings.data_dir}/agent", *_QUIET]
        agent = Child.start("emberwatch-agent", command, _READY_S)
        try:
            say(f"agent        sampling since {time.monotonic() - began_s:.1f} s after the start")
            say("profile      the first window comes within 10 s")
            _stay(settings, server, agent, stop, say)
        finally:
            say("agent        stopping")
            agent.stop(15)
    finally:
        say("server       stopping")
        server.stop(15)


def _serve_command(settings: Settings) -> list[str]:
    command = ["server.cli", "serve", "--data-dir", settings.data_dir, "--http", settings.http, "--grpc", settings.grpc, *_QUIET]
    return [*command, "--insecure"] if settings.insecure else command


def _stay(settings: Settings, server: Child, agent: Child, stop: list[int], say: Say) -> None:
    """Say the address once the first profile can be seen, then wait for the end."""
    url = f"http://{server.facts['http']}"
    is_shown = False
    while not stop:
        for child in (server, agent):
            if child.process.poll() is not None:
                raise ServerError(f"{child.name} ended by itself (exit status {child.process.returncode})")
        if not is_shown and has_profiles(url):
            say(f"ready        open {url}/  (Ctrl-C stops both)")
            is_shown = True
        time.sleep(0.25)


def has_profiles(url: str) -> bool:
    """Whether the server at `url` has anything to show yet."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/labels/service/values", timeout=2) as answer:
            return b'"value"' in answer.read()
    except OSError:
        return False


def _stop_flag() -> list[int]:
    """A list that holds the signal once SIGINT or SIGTERM came."""
    seen: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: seen.append(received))
    return seen


def say_line(text: str) -> None:
    """One step, at once even into a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
