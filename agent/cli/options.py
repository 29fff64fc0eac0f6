# SPDX-License-Identifier: Apache-2.0
"""Command line options made from the table of settings."""

import os
import stat
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from agent.config import Settings

Command = Callable[..., None]


def with_settings(command: Command) -> Command:
    """Give a click command one option for each setting, and --config for a file of them."""
    for row in reversed(fields(Settings)):
        flag = f"--{row.name.replace('_', '-')}"
        command = click.option(
            f"{flag}/--no-{flag[2:]}" if row.type is bool else flag,
            row.name,
            default=row.default,
            type=row.type,
            envvar=f"EMBERWATCH_{row.name.upper()}",
            help=row.metadata["help"],
            show_default=True,
        )(command)
    return click.option("--config", type=click.Path(path_type=Path), is_eager=True, expose_value=False, callback=_read_file)(command)


def _read_file(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Take defaults from the table [agent] of a TOML file; emberwatch.toml in the working directory when none is named.

    One that was not named must not be another user's: started by root in a foreign folder, it would say where root writes.
    """
    chosen = path or Path("emberwatch.toml")
    if path is None and not chosen.exists():
        return
    if path is None and not _is_own(chosen):
        raise click.ClickException(
            f"{chosen} here can be written by other users: name it with --config {chosen} if it is meant, or move away"
        )
    try:
        table: dict[str, Any] = tomllib.loads(chosen.read_text()).get("agent", {})
    except OSError as error:
        raise click.ClickException(f"cannot read settings from {chosen}: {error.strerror}") from error
    except ValueError as error:
        raise click.ClickException(f"cannot read settings from {chosen}: {error}") from error
    if not isinstance(table, dict):
        raise click.ClickException(f"{chosen}: agent must be a table: write [agent] and the settings below it")
    unknown = sorted(set(table) - {row.name for row in fields(Settings)})
    if unknown:
        raise click.ClickException(f"{chosen}: no such setting: {', '.join(unknown)}")
    context.default_map = table


def _is_own(path: Path) -> bool:
    found = path.stat()
    return found.st_uid in {0, os.geteuid()} and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
