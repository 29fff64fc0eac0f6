# SPDX-License-Identifier: Apache-2.0
"""emberwatch: up, serve, record, query, search, diff, deploy, symbols."""

import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import click

from server.cli.ask import Api, api_at
from server.cli.deploy import Asked, as_json, deploy_body, render_deploys
from server.cli.diff import Given, How, diff_body
from server.cli.diff_formats import DiffFormat, render_diff
from server.cli.formats import Format
from server.cli.object_formats import ask_about, usual_format
from server.cli.operator_options import UNITS, operator_parameters, operators_of, with_operators
from server.cli.options import with_settings
from server.cli.output import paper_of, try_output, write_answer, write_text
from server.cli.progress import errors_in_words, progress
from server.cli.record import RECORDED_KINDS, Recording, record
from server.cli.search import SearchFormat, render_search
from server.cli.symbols import symbols
from server.cli.up import run_up, say_line
from server.config import Settings, checked
from server.query.grouping import By
from server.query.idle import Idle

_LONGEST_S = 86_400
_FORMATS = click.Choice([wanted.value for wanted in Format])
_BY = click.Choice([*UNITS, *(str(by) for by in By)])


def _seconds(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise click.BadParameter(f"{value:g} is not above 0 and at most {_LONGEST_S}")
    return value


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Continuous profiling: collect, store, name and show where the CPUs of a fleet spend their time."""


main.add_command(symbols)


@main.command()
@with_settings
def up(**values: Any) -> None:
    """Server and agent on this host, until Ctrl-C."""
    with errors_in_words():
        run_up(checked(Settings(**values)), say_line)


@main.command()
@with_settings
@click.option(
    "--ready-fd", type=int, default=-1, hidden=True, help="Say the addresses on this descriptor when listening; stop when it closes."
)
def serve(ready_fd: int, **values: Any) -> None:
    """The server alone; agents on other machines send to its gRPC port."""
    with errors_in_words():
        settings = checked(Settings(**values))
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Its own lines say less than ours; read when gRPC is imported.
        from server.app import Server

        level = settings.log_level.upper()
        logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        for name, least in (("alembic", logging.WARNING), ("waitress.queue", logging.ERROR)):
            logging.getLogger(name).setLevel(least)
        server = Server(settings)
        addresses = server.start()
        logging.getLogger(__name__).info("listening http=%s grpc=%s data=%s", addresses.http, addresses.grpc, settings.data_dir)
        try:
            _stay(ready_fd, {"http": addresses.http, "grpc": addresses.grpc})
        finally:
            server.close()


@main.command("record")
@click.option("--kind", type=click.Choice(RECORDED_KINDS), default="cpu", show_default=True, help="What to record.")
@click.option("--hold", "is_hold", is_flag=True, help="With --kind lock: not how long locks are waited for but how long they are held.")
@click.option(
    "--duration",
    "duration_s",
    type=float,
    callback=_seconds,
    help="Seconds; without it, until COMMAND ends, or 10.",
)
@click.option("--pid", "pids", type=int, multiple=True, help="Only this process and what it starts; may be given more than once.")
@click.option("--rate", "rate_hz", type=int, default=99, show_default=True, help="Samples a second and CPU.")
@click.option("--format", "wanted", type=_FORMATS, help="Folded stacks if not said; calls, locks, peers and times a table.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of standard output.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record_command(
    kind: str,
    is_hold: bool,
    duration_s: float | None,
    pids: tuple[int, ...],
    rate_hz: int,
    wanted: str | None,
    output: Path | None,
    command: tuple[str, ...],
) -> None:
    """Profile this host, some processes, or COMMAND from its first instruction to its end, with nothing kept.

    Only the answer goes to standard output; what COMMAND prints there goes to standard error.
    """
    if is_hold and kind != "lock":
        raise click.BadParameter("is for --kind lock", param_hint="--hold")
    kind = "lock_hold" if is_hold else kind
    recording = Recording(kind, duration_s if duration_s or command else 10.0, pids, command, rate_hz)
    chosen = Format(wanted) if wanted else usual_format(kind)
    ask = ask_about(f"{kind}{{}}", chosen, "", "")

    def answer(api: Api, selector: str, from_s: float) -> bytes:
        return api.get(ask.path, query=selector, **{"from": f"{from_s:.3f}"}, **ask.parameters)

    with errors_in_words():
        try_output(output)
        with progress() as told:
            body = record(recording, answer, told)
        write_answer(body, chosen, output)


@main.command("query")
@click.argument("selector", default="cpu{}")
@click.option("--from", "from_", default="-15m", show_default=True, help="Start: -15m, RFC 3339 or unix seconds.")
@click.option("--until", default="now", show_default=True, help="End, exclusive.")
@click.option("--server", "url", default="http://127.0.0.1:4040", show_default=True, envvar="EMBERWATCH_URL", help="The server's page.")
@click.option("--format", "wanted", type=_FORMATS, default=Format.TOP.value, show_default=True)
@click.option("--by", type=_BY, default=None, help="What a row or frame stands for; calls, locks and peers need not say.")
@click.option("--idle", type=click.Choice([str(idle) for idle in Idle]), default=None, help="Waits for work: hidden if not said.")
@click.option("--column", default="", help="What of the kind is added up, such as uninterruptible_ns of waits.")
@with_operators
def query_command(
    selector: str, from_: str, until: str, url: str, wanted: str, by: str | None, idle: str | None, column: str, **operators: object
) -> None:
    """Ask a server what its page shows: functions, calls, locks, folded stacks or JSON of SELECTOR.

    For example 'cpu{service="checkout"}', 'offcpu{class="lock"}' or 'syscall{host="web-1"}'.
    """
    with errors_in_words():
        unit = by if by in UNITS else ""
        more = operator_parameters(operators, unit or "") | ({"column": column} if column else {})
        ask = ask_about(selector, Format(wanted), by or "", idle or "").with_more(more)
        body = api_at(url).get(ask.path, query=selector, **{"from": from_}, until=until, **ask.parameters)
        write_answer(body, Format(wanted), None)


@main.command("search")
@click.argument("text")
@click.option("--regex", is_flag=True, help="TEXT is a regular expression (RE2), found anywhere in the name.")
@click.option("--query", "selector", default="cpu{}", show_default=True, help="Where to search.")
@click.option("--from", "from_", default="-15m", show_default=True, help="Start: -15m, RFC 3339 or unix seconds.")
@click.option("--until", default="now", show_default=True, help="End, exclusive.")
@click.option("--server", "url", default="http://127.0.0.1:4040", show_default=True, envvar="EMBERWATCH_URL", help="The server's page.")
@click.option("--format", "wanted", type=click.Choice([f.value for f in SearchFormat]), default=SearchFormat.TABLE.value, show_default=True)
def search_command(text: str, regex: bool, selector: str, from_: str, until: str, url: str, wanted: str) -> None:
    """Which services spend time in functions whose name holds TEXT (=TEXT: is TEXT), over the whole fleet."""
    with errors_in_words():
        asked = {"query": selector, "from": from_, "until": until, "search": text, "mode": "regex" if regex else "text"}
        paper = paper_of(None)
        write_text(render_search(api_at(url).get("search", **asked), SearchFormat(wanted), paper), paper, None)


@main.command("diff")
@click.argument("left")
@click.argument("right")
@click.option("--from", "from_", default="-15m", show_default=True, help="Start of both: -15m, RFC 3339 or unix seconds.")
@click.option("--until", default="now", show_default=True, help="End of both, exclusive.")
@click.option("--left-from", default="", help="Start of LEFT alone; likewise the next three.")
@click.option("--left-until", default="")
@click.option("--right-from", default="")
@click.option("--right-until", default="")
@click.option("--server", "url", default="http://127.0.0.1:4040", show_default=True, envvar="EMBERWATCH_URL", help="The server's page.")
@click.option("--format", "wanted", type=click.Choice([f.value for f in DiffFormat]), default=DiffFormat.TABLE.value, show_default=True)
@click.option("--left-rate", default="", help="Requests a second of LEFT: values are said per request when both are given.")
@click.option("--right-rate", default="", help="Requests a second of RIGHT.")
@click.option("--together", is_flag=True, help="Only the time in which both ran: a canary beside the others.")
@click.option("--by", type=click.Choice(UNITS), default=None, help="What a frame stands for.")
@with_operators
def diff_command(
    left: str,
    right: str,
    from_: str,
    until: str,
    left_from: str,
    left_until: str,
    right_from: str,
    right_until: str,
    left_rate: str,
    right_rate: str,
    url: str,
    wanted: str,
    together: bool,
    by: str | None,
    **operators: object,
) -> None:
    """What changed from LEFT to RIGHT beyond noise. Each is a selector, for example 'cpu{version="2.4.1"}', or a file: folded or pprof.

    A file that exists is taken as a file.
    """
    with errors_in_words():
        a = Given(left, left_from or from_, left_until or until, left_rate)
        b = Given(right, right_from or from_, right_until or until, right_rate)
        parameters = operator_parameters(operators, by or "") | ({"together": "1"} if together else {})
        how = How(DiffFormat(wanted), parameters, operators_of(operators, by or ""))
        body = diff_body(a, b, api_at(url), how)
        paper = paper_of(None)
        write_text(render_diff(body, DiffFormat(wanted), paper), paper, None)


@main.command("deploy")
@click.argument("service", default="")
@click.argument("version", default="")
@click.option("--note", help="What to say of VERSION, on every timeline and in its report; an empty one takes it back.")
@click.option("--requests-per-s", type=float, help="Requests a second that one host answers with VERSION; reports are then per request.")
@click.option("--requests-per-s-before", type=float, help="The same of the version before; by default equal.")
@click.option("--wait", "wait_s", type=float, default=0.0, help="Wait so many seconds for the report of VERSION.")
@click.option("--from", "start", default="-7d", show_default=True, help="How far back: -7d, RFC 3339 or unix seconds.")
@click.option("--server", "url", default="http://127.0.0.1:4040", show_default=True, envvar="EMBERWATCH_URL", help="The server's page.")
@click.option("--format", "wanted", type=click.Choice(["table", "json"]), default="table", show_default=True)
def deploy_command(url: str, wanted: str, **given: Any) -> None:
    """List deploys, show what VERSION of SERVICE changed, or say something of it with --note or --requests-per-s."""
    with errors_in_words():
        answer = deploy_body(api_at(url), Asked(**given))
        write_text(as_json(answer) if wanted == "json" else render_deploys(answer), paper_of(None), None)


def _stay(ready_fd: int, facts: dict[str, str]) -> None:
    """Tell the parent that we listen; wait for SIGINT, SIGTERM, or the end of the parent."""
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stop.append(received))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno())
        try:
            _wait(ours, ready_fd, facts, stop)
        finally:
            signal.set_wakeup_fd(-1)  # A second signal while we stop finds no closed descriptor.


def _wait(signalled: socket.socket, ready_fd: int, facts: dict[str, str], stop: list[int]) -> None:
    if ready_fd < 0:
        signalled.recv(1)
        return
    with socket.socket(fileno=ready_fd) as parent:
        parent.sendall(json.dumps(facts).encode() + b"\n")
        parent.settimeout(1.0)
        while not stop:
            try:
                if not parent.recv(1):
                    return
            except TimeoutError:
                continue
