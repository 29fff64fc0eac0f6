# SPDX-License-Identifier: Apache-2.0
"""What commands say of themselves on standard error: how far they are, and in one sentence why they ended."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from server.cli.record import Progress as Told
from server.errors import ServerError


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Our own errors end a command with their sentence and status 1, without a traceback."""
    try:
        yield
    except ServerError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def progress() -> Iterator[Told]:
    """A bar on a terminal's standard error; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _, __: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=min(share, 1.0))
