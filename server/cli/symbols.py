# SPDX-License-Identifier: Apache-2.0
"""The command `emberwatch symbols`: what has no names, and `upload` to bring them."""

import sys
from pathlib import Path

import click

from server.cli.ask import api_at
from server.cli.output import paper_of, write_text
from server.cli.progress import errors_in_words, progress
from server.cli.symbol_formats import SymbolFormat, render_symbols
from server.cli.symbol_upload import Uploader

_server = click.option(
    "--server", "url", default="http://127.0.0.1:4040", show_default=True, envvar="EMBERWATCH_URL", help="The server's page."
)


@click.group(invoke_without_command=True)
@click.option("--query", "selector", default="cpu{}", show_default=True, help="Only binaries in these series.")
@click.option("--from", "from_", default="-15m", show_default=True, help="Start: -15m, RFC 3339 or unix seconds.")
@click.option("--until", default="now", show_default=True, help="End, exclusive.")
@click.option("--format", "wanted", type=click.Choice([f.value for f in SymbolFormat]), default=SymbolFormat.TABLE.value, show_default=True)
@_server
@click.pass_context
def symbols(context: click.Context, selector: str, from_: str, until: str, wanted: str, url: str) -> None:
    """Binaries by CPU time without names: why, and the line that mends it."""
    if context.invoked_subcommand is not None:
        return
    with errors_in_words():
        body = api_at(url).get("symbols", query=selector, **{"from": from_}, until=until)
        paper = paper_of(None)
        write_text(render_symbols(body, SymbolFormat(wanted), paper), paper, None)


@symbols.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@_server
def upload(paths: tuple[Path, ...], url: str) -> None:
    """Send binaries and debug files, or all below a directory, that the server does not have; they are matched by what stands in them.

    Each build id is sent once. An upload that broke off goes on where it stopped.
    """
    with errors_in_words(), progress() as told:
        tally = Uploader(api_at(url), click.echo, told).send_all(paths)
    click.echo(f"{tally.sent} sent, {tally.known} known already, {tally.refused} refused")
    if tally.refused:
        sys.exit(1)
