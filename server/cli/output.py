# SPDX-License-Identifier: Apache-2.0
"""Where an answer is written: standard output, or a file that is tried before the work begins."""

import os
import shutil
import sys
from pathlib import Path

import click

from server.cli.formats import Format, Paper
from server.cli.object_formats import render_answer
from server.errors import ServerError


def try_output(path: Path | None) -> None:
    """Raises ServerError when the file cannot be written: sooner than after minutes of recording."""
    if path is None:
        return
    try:
        path.open("ab").close()
    except OSError as error:
        raise _refused(str(path), error) from error


def write_answer(body: bytes, wanted: Format, path: Path | None) -> None:
    """Write the answer of the API in a format. Raises ServerError when the disk, or what standard output leads to, refuses."""
    paper = paper_of(path)
    write_text(render_answer(body, wanted, paper), paper, path)


def paper_of(path: Path | None) -> Paper:
    """Tell what is written on."""
    return Paper(path is None and sys.stdout.isatty(), shutil.get_terminal_size().columns)


def write_text(text: str, paper: Paper, path: Path | None) -> None:
    """Write what was rendered. Raises ServerError as `write_answer` does."""
    try:
        if path is not None:
            path.write_text(text, encoding="utf-8")
        else:
            click.echo(text, nl=False, color=paper.is_terminal)
    except BrokenPipeError:
        raise  # The reader (head, less) has seen enough: click ends the command without a word.
    except OSError as error:
        if path is None:
            _drop_what_is_left()
        raise _refused(str(path or "standard output"), error) from error


def _refused(what: str, error: OSError) -> ServerError:
    return ServerError(f"cannot write to {what}: {error.strerror}")


def _drop_what_is_left() -> None:
    """What is still buffered would be refused again at the exit, with a traceback."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
