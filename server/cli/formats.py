# SPDX-License-Identifier: Apache-2.0
"""Answers of the API as text: tables for people, folded stacks and JSON for programs.

Names come from profiled processes and may hold anything: control characters are escaped, so that none reaches a terminal.
"""

import io
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from server.query.timerange import SECOND_NS, show_time

Json = dict[str, Any]
ROWS_SHOWN = 30
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NS_UNITS = ((3600 * 10**9, "h"), (60 * 10**9, "min"), (10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
_COUNT_UNITS = ((10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))
_BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_UNITS = {"ns": _NS_UNITS, "bytes": _BYTE_UNITS}


_KIND_WORDS = {
    "cpu": ("CPU", "cores", "samples"),
    "offcpu": ("waiting", "threads", "waits"),
    "runqueue": ("waiting for a CPU", "threads", "waits"),
    "lock": ("waiting for locks", "threads", "waits"),
    "lock_hold": ("holding locks", "threads", "holds"),
    "syscall_stack": ("system calls", "threads", "calls"),
    "tcp_stack": ("connects", "connects", "connects"),
}
"""What is measured, what a second of it in each second is called, and what is counted."""


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    """Functions by total."""
    TOP = "top"
    """Functions by self."""
    FOLDED = "folded"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Ask:
    """The route below /api/v1 that a format is made from, and the parameters it needs beside the question's."""

    path: str
    parameters: dict[str, str]

    def with_more(self, parameters: dict[str, str]) -> "Ask":
        """Ask with these parameters too."""
        return Ask(self.path, self.parameters | parameters)


@dataclass(frozen=True, slots=True)
class Paper:
    """What the text is written on."""

    is_terminal: bool = False
    """With colour and lines."""
    width: int = 120
    """Columns of a terminal."""


def ask_for(wanted: Format) -> Ask:
    """Give what to ask the API for."""
    match wanted:
        case Format.TABLE:
            return Ask("top", {"sort": "total", "limit": str(ROWS_SHOWN)})
        case Format.TOP:
            return Ask("top", {"sort": "self", "limit": str(ROWS_SHOWN)})
        case Format.FOLDED:
            return Ask("flamegraph", {"format": "folded", "group": "thread"})
        case Format.JSON:
            return Ask("flamegraph", {})


def render(body: bytes, wanted: Format, paper: Paper) -> str:
    """Make text of the body that the API gave to `ask_for(wanted)`; ends in a newline unless it is empty."""
    if wanted is Format.FOLDED:
        return body.decode("utf-8", "backslashreplace")
    answer: Json = json.loads(body)
    if wanted is Format.JSON:
        return json.dumps(answer, indent=2 if paper.is_terminal else None) + "\n"
    if not answer["total"]:
        return headline(answer) + "\n"
    return _rich_table(answer, paper.width) if paper.is_terminal else _plain_table(answer)


def headline(answer: Json) -> str:
    """Say how much and over what in one line."""
    total, seconds = int(answer["total"]), float(answer["seconds"])
    if not total:
        nearest = answer.get("nearest_data_s")
        said = _idle_words(answer) or "no data in this range"
        return said + (f"; the nearest is at {_clock(nearest)}" if nearest is not None else "")
    what, rate, count = _KIND_WORDS.get(answer["kind"], (answer["kind"], "threads", "events"))
    words = [f"{quantity(total, answer['unit'])} of {what}"]
    if answer["unit"] == "ns" and seconds:
        words.append(f"{significant(total / 1e9 / seconds)} {rate} over {quantity(int(seconds * 1e9), 'ns')}")
    return ", ".join([*words, f"{quantity(int(answer['samples']), 'count')} {count}", *filter(None, [_idle_words(answer)])])


def _idle_words(answer: Json) -> str:
    """Say how much waits for work; "" for kinds that do not, and when there is none."""
    idle = answer.get("idle")
    if not idle or not idle["idle"]:
        return ""
    parts = [f"{safe(reason)} {percent(value / idle['total'])}" for reason, value in idle["by"].items()]
    is_hidden = int(answer["total"]) == idle["total"] - idle["idle"]
    return f"waiting for work {'hidden' if is_hidden else 'shown'}: {percent(idle['share'])} ({', '.join(parts)})"


def quality_line(quality: Json) -> str:
    """Say what is missing in one line."""
    lost = "lost on its hosts" if quality["is_of_hosts"] else "lost"
    words = [f"{lost} {percent(quality['lost_share'], 2)}", f"whole stacks {percent(quality['whole_share'])}"]
    words += [f"unnamed {percent(quality['unnamed_share'])}", f"hosts {quality['hosts']}"]
    words += [f"{reason.lower()} {count}" for reason, count in {**quality["lost"], **quality["stack_lost"]}.items()]
    silent = [safe(host) for host in quality["hosts_silent"]]
    return ", ".join([*words, *([f"silent: {' '.join(silent)}"] if silent else [])])


def quantity(value: int, unit: str) -> str:
    """Write a value as people say it: 61 s, 4.2 ms, 1.2 M, 3.4 MiB."""
    for size, name in _UNITS.get(unit, _COUNT_UNITS):
        # Minutes and hours only from two of them on: "61 s" is what people say.
        if value >= size * (2 if name in {"h", "min"} else 1):
            return f"{significant(value / size)} {name}".rstrip()
    return f"0 {_UNITS.get(unit, _COUNT_UNITS)[-1][1]}".rstrip()


def significant(value: float) -> str:
    """Write a number with one decimal below 10, with none above; with two below 1."""
    if value < 0.995:
        return f"{value:.2f}"
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:.0f}"


def percent(share: float, decimals: int = 1) -> str:
    """Write a share of 1."""
    return f"{share * 100:.{decimals}f} %"


def safe(text: str) -> str:
    """Make text safe for a terminal: control characters and those that turn the direction of text become escapes."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}" if ord(found.group()) < 256 else f"\\u{ord(found.group()):04x}", text)


def _cells(answer: Json) -> list[tuple[str, str, str, str, str, str]]:
    unit = answer["unit"]
    return [
        (
            quantity(row["self"], unit),
            percent(row["self_share"]),
            quantity(row["total"], unit),
            percent(row["total_share"]),
            safe(row["name"]),
            safe(row["binary"]),
        )
        for row in answer["rows"]
    ]


_TITLES = ("self", "", "total", "", "function", "binary")
_RIGHT = 4
"""Columns from the left that are set to the right."""


def _plain_table(answer: Json) -> str:
    cells = [_TITLES, *_cells(answer)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_TITLES))]
    lines = [
        "  ".join(cell.rjust(width) if i < _RIGHT else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    head = [headline(answer), quality_line(answer["quality"])]
    return "".join(f"{line.rstrip()}\n" for line in [*head, "", *lines, *_rest(answer)])


def _rich_table(answer: Json, width: int) -> str:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for i, title in enumerate(_TITLES):
        table.add_column(
            title, justify="right" if i < _RIGHT else "left", no_wrap=True, overflow="ellipsis", ratio=1 if i == _RIGHT else None
        )
    for row in _cells(answer):
        table.add_row(*(Text(cell, style="dim" if i == len(row) - 1 else "") for i, cell in enumerate(row)))
    console = Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(Text(headline(answer), style="bold"))
        console.print(Text(quality_line(answer["quality"]), style="dim"))
        console.print()
        console.print(table)
        for line in _rest(answer):
            console.print(Text(line, style="dim"))
    return captured.get()


def _rest(answer: Json) -> list[str]:
    hidden = answer["rows_total"] - len(answer["rows"])
    return [f"... and {hidden} more functions"] if hidden > 0 else []


def _clock(unix_s: float) -> str:
    return show_time(int(unix_s) * SECOND_NS)
