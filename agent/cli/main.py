# SPDX-License-Identifier: Apache-2.0
"""emberwatch-agent: run, doctor."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from agent.cli.options import with_settings
from agent.config import Settings, as_mapping, checked
from agent.errors import AgentError

_ENVIRONMENT = {
    "EMBERWATCH_SERVICE": "emberwatch-agent",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMPY_MADVISE_HUGEPAGE": "0",  # An array that is used once need not be cleared by 2 MiB.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),  # Else it grows with the largest array ever freed, and so does what the heap keeps.
    "MALLOC_TRIM_THRESHOLD_": str(2 << 20),
}
"""Of the collector: mallopt(3), and what libraries read once at their start."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Sample this host and send what was seen to an Emberwatch server."""


@main.command()
@with_settings
@click.option("--ready-fd", type=int, default=-1, hidden=True, help="Say on this descriptor when sampling has begun; stop when it closes.")
def run(ready_fd: int, **values: Any) -> None:
    """Sample until stopped by Ctrl-C or SIGTERM.

    The collector is a fresh process image: what only the command line needs does not stay in memory, and variables that
    libraries read once at their start are in place before them.
    """
    try:
        settings = checked(Settings(**values))
    except AgentError as error:
        raise click.ClickException(str(error)) from error
    environment = dict(os.environ)
    environment.update(_ENVIRONMENT)
    mapping = json.dumps(as_mapping(settings))
    try:
        os.execve(sys.executable, [sys.executable, "-P", "-m", "agent.cli.collector", mapping, str(ready_fd)], environment)
    except OSError as error:
        raise click.ClickException(f"this user cannot run {sys.executable}: {error.strerror}") from error


@main.command()
@with_settings
@click.option("--json", "as_json", is_flag=True, help="Print the findings for a program.")
def doctor(as_json: bool, **values: Any) -> None:
    """Say what this kernel offers and lacks, collector by collector, with the remedy. Exit status 0 when on-CPU works."""
    from agent.cli.doctor import report

    works, text = report(as_json, Path(values["cache_dir"] or values["data_dir"]) / "unwind")
    click.echo(text)
    sys.exit(0 if works else 1)
