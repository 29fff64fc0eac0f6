# SPDX-License-Identifier: Apache-2.0
"""Tables by object as text: calls, locks, connections, and what each second of a service's threads was spent on."""

import io
import json
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from server.cli.formats import ROWS_SHOWN, Ask, Format, Json, Paper, ask_for, percent, quantity, render, safe
from server.cli.operator_options import UNITS
from server.errors import BadRequest
from server.query.complaint import QueryError
from server.query.selector import parse_selector

USUAL_BY = {"syscall": "call", "lock": "object", "lock_hold": "object", "tcp": "object", "time": "service", "runqueue": "service"}
"""What tables of a kind are by when nothing is said; other kinds are shown by function."""
_HIDES_IDLE = "offcpu"
_OF_LOCKS = ("lock", "lock_hold")
_FOLDED = {
    "syscall": {"group": "object"},
    "tcp": {"group": "object"},
    "lock": {"group": "object", "column": "ns"},
    "lock_hold": {"group": "object", "column": "ns"},
    "syscall_stack": {"group": "object", "column": "ns"},
    "tcp_stack": {"group": "object"},
    "offcpu": {"group": "thread", "column": "ns"},
    "runqueue": {"group": "thread", "column": "ns"},
}
"""What folded stacks of a kind are of: other kinds are counted, by thread."""
_MOST_ERRORS = 3

_Cell = Callable[[Json], str]
_Column = tuple[str, _Cell]


def ask_about(selector: str, wanted: Format, by: str, idle: str) -> Ask:
    """Give what to ask the API for; `by` and `idle` are what was said, or "". Raises BadRequest when they make no sense together."""
    kind = _kind_of(selector)
    by = "" if by in UNITS else by or USUAL_BY.get(kind, "")
    idle = idle or ("hide" if kind == _HIDES_IDLE else "")
    if wanted is Format.FOLDED:
        return Ask("flamegraph", {"format": "folded", **_FOLDED.get(kind, {"group": "thread"}), **({"idle": idle} if idle else {})})
    if not by:
        ask = ask_for(wanted)
        return Ask(ask.path, ask.parameters | ({"idle": idle} if idle else {}))
    if idle and kind != _HIDES_IDLE:
        raise BadRequest(f"only waits can wait for work: leave --idle {idle} out")
    more = {"functions": "1"} if kind in _OF_LOCKS else {}
    return Ask("table", {"by": by, "limit": str(ROWS_SHOWN), **more})


def usual_format(kind: str) -> Format:
    """Give the format of a recording when none is said: stacks where there are any."""
    return Format.TABLE if kind in USUAL_BY else Format.FOLDED


def render_answer(body: bytes, wanted: Format, paper: Paper) -> str:
    """Make text of what the API gave to `ask_about`; see server.cli.formats.render for all that is no table by object."""
    if wanted in (Format.FOLDED, Format.JSON):
        return render(body, wanted, paper)
    answer: Json = json.loads(body)
    if "by" not in answer:
        return render(body, wanted, paper)
    if not answer["rows"]:
        return "no data in this range\n"
    columns = _columns(answer)
    cells = [[title for title, _ in columns], *([cell(row) for _, cell in columns] for row in answer["rows"])]
    lines = [_headline(answer), *_lost(answer)], _rest(answer)
    return _rich(cells, lines, paper.width) if paper.is_terminal else _plain(cells, lines)


def _kind_of(selector: str) -> str:
    try:
        return parse_selector(selector).kind
    except QueryError:
        return ""  # The server says what is wrong with it.


def _headline(answer: Json) -> str:
    totals, seconds = answer["totals"], quantity(round(answer["seconds"] * 10**9), "ns")
    match answer["kind"]:
        case "tcp":
            out, back = (quantity(totals.get(name, 0), "bytes") for name in ("bytes_out", "bytes_in"))
            return f"{quantity(totals.get('connects', 0), 'count')} connects, {out} out, {back} in over {seconds}"
        case "time":
            spent = sum(value for name, value in totals.items() if name.endswith("_ns"))
            return f"{quantity(spent, 'ns')} of threads over {seconds}"
        case kind:
            count, words = quantity(totals.get("count", 0), "count"), {"syscall": "calls", "lock_hold": "holds"}.get(kind, "waits")
            return f"{count} {words}, {quantity(totals.get('ns', 0), 'ns')} in them over {seconds}"


def _columns(answer: Json) -> list[_Column]:
    names = [column["name"] for column in answer["columns"]]
    by: str = (
        {**dict.fromkeys(_OF_LOCKS, "lock"), "tcp": "peer"}.get(answer["kind"], "object") if answer["by"] == "object" else answer["by"]
    )
    name: _Column = (by, lambda row: safe(row["name"]) or f"[no {by}]")
    if answer["kind"] == "tcp":
        return [name, *_tcp_columns()]
    if {"count", "ns"} <= set(names):
        return [name, *_timed_columns(answer)]
    units = {column["name"]: column["unit"] for column in answer["columns"]}
    return [name, *(_value(column.removesuffix("_ns").replace("_", " "), column, units[column]) for column in names)]


def _value(title: str, column: str, unit: str) -> _Column:
    return title, lambda row: quantity(row["values"].get(column, 0), unit)


def _quantile(title: str, histogram: str, which: str) -> _Column:
    def cell(row: Json) -> str:
        value = row["histograms"].get(histogram, {}).get(f"{which}_ns")
        return "-" if value is None else quantity(round(value), "ns")

    return title, cell


def _timed_columns(answer: Json) -> list[_Column]:
    columns = [_value("count", "count", "count")]
    if answer["by"] == "call":
        columns.append(("errors", _errors))
    columns += [_value("total", "ns", "ns"), ("mean", _mean)]
    if any("bucket" in row["histograms"] for row in answer["rows"]):
        columns += [_quantile("p50", "bucket", "p50"), _quantile("p99", "bucket", "p99")]
    columns.append(_value("max", "max_ns", "ns"))
    if "first" in answer["rows"][0]:
        columns.append(("who held" if answer["kind"] == "lock_hold" else "who waits", lambda row: _functions(row["first"])))
    if answer["kind"] == "lock" and "second" in answer["rows"][0]:
        columns.append(("who holds", lambda row: _functions(row["second"])))
    return columns


def _tcp_columns() -> list[_Column]:
    return [
        *(_value(name, name, "count") for name in ("connects", "accepts")),
        _value("out", "bytes_out", "bytes"),
        _value("in", "bytes_in", "bytes"),
        ("retransmits", _retransmits),
        _quantile("rtt p50", "rtt", "p50"),
        _quantile("rtt p99", "rtt", "p99"),
        *(_value(name, name, "count") for name in ("refused", "resets")),
    ]


def _retransmits(row: Json) -> str:
    values: Mapping[str, int] = row["values"]
    sent = values.get("segments_out", 0)
    return percent(values.get("retransmits", 0) / sent, 2) if sent else "-"


def _errors(row: Json) -> str:
    told = [f"{error['error']} {quantity(error['count'], 'count')}" for error in row["errors"][:_MOST_ERRORS]]
    return ", ".join(told + (["..."] if len(row["errors"]) > _MOST_ERRORS else [])) or "-"


def _mean(row: Json) -> str:
    count = row["values"].get("count", 0)
    return quantity(round(row["values"].get("ns", 0) / count), "ns") if count else "-"


def _functions(functions: Sequence[Json]) -> str:
    named = [one for one in functions if one["name"]]
    return f"{safe(named[0]['name'])} {percent(named[0]['share'])}" if named else "-"


def _lost(answer: Json) -> list[str]:
    """Say what is missing, when something is."""
    reasons = [f"{reason.lower()} {quantity(count, 'count')}" for reason, count in answer["lost"].items()]
    return [", ".join([f"lost on its hosts {percent(answer['lost_share'], 2)}", *reasons])] if reasons else []


def _rest(answer: Json) -> list[str]:
    hidden = answer["rows_total"] - len(answer["rows"])
    return [f"... and {hidden} more"] if hidden > 0 else []


def _plain(cells: Sequence[Sequence[str]], lines: tuple[list[str], list[str]]) -> str:
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    rows = [
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    return "".join(f"{line.rstrip()}\n" for line in [*lines[0], "", *rows, *lines[1]])


def _rich(cells: Sequence[Sequence[str]], lines: tuple[list[str], list[str]], width: int) -> str:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, title in enumerate(cells[0]):
        table.add_column(title, justify="left" if at == 0 else "right", no_wrap=True, overflow="ellipsis", ratio=1 if at == 0 else None)
    for row in cells[1:]:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False)
    with console.capture() as captured:
        for line in lines[0]:
            console.print(Text(line, style="bold" if line is lines[0][0] else "dim"))
        console.print()
        console.print(table)
        for line in lines[1]:
            console.print(Text(line, style="dim"))
    return captured.get()
