# SPDX-License-Identifier: Apache-2.0
"""Diffs as text: changed functions as a table that says more, less, new or vanished in words; folded stacks with two counts; JSON."""

import io
import json
from enum import StrEnum

from rich.console import Console
from rich.table import Table
from rich.text import Text

from server.cli.formats import Json, Paper, percent, quality_line, quantity, safe

ROWS_SHOWN = 30
_TITLES = ("change", "95 % interval", "A", "B", "", "function", "binary", "explained by")
_RIGHT = 4
"""Columns from the left that are set to the right."""


class DiffFormat(StrEnum):
    """How a diff is printed."""

    TABLE = "table"
    """Functions by change."""
    JSON = "json"
    FOLDED = "folded"
    """`stack count_left count_right`, as difffolded.pl writes it."""


def render_diff(body: bytes, wanted: DiffFormat, paper: Paper) -> str:
    """Make text of what was compared; ends in a newline unless it is empty."""
    if wanted is DiffFormat.FOLDED:
        return body.decode("utf-8", "backslashreplace")
    answer: Json = json.loads(body)
    if wanted is DiffFormat.JSON:
        return json.dumps(answer, indent=2 if paper.is_terminal else None) + "\n"
    return _rich(answer, paper.width) if paper.is_terminal else _plain(answer)


def _head(answer: Json) -> list[str]:
    changed = answer["changed"]
    lines = [_side_line(name, answer[name.lower()], answer["unit"]) for name in "AB"]
    verdict = f"{changed['beyond_noise']} of {changed['frames']} changed functions are beyond noise at 95 % (Benjamini-Hochberg)"
    if changed["explained"]:
        verdict += f"; {changed['explained']} of these are explained by others"
    return [*lines, verdict, *map(safe, answer["notes"])]


def _side_line(name: str, side: Json, unit: str) -> str:
    words = [f"{name}: {safe(side['query'])}", quantity(side["total"], unit)]
    if side["per"] and side["per"]["unit"] == "request":
        words.append(f"{quantity(round(side['per']['total']), unit)} a request")
    if unit != "count":
        words.append(f"{quantity(side['samples'], 'count')} samples")
    if side["quality"] is not None:
        words.append(quality_line(side["quality"]))
    return ", ".join(words)


def _titles(answer: Json) -> tuple[str, ...]:
    return (*_TITLES, "a request") if _is_per_request(answer) else _TITLES


def _is_per_request(answer: Json) -> bool:
    return all(answer[side]["per"] and answer[side]["per"]["unit"] == "request" for side in "ab")


def _each(row: Json, answer: Json) -> list[str]:
    """What a request takes on both sides, when it is known how many there were."""
    if not _is_per_request(answer):
        return []
    return [" -> ".join(quantity(round(row[name]), answer["unit"]) for name in ("a_per", "b_per"))]


def _cells(row: Json, answer: Json) -> tuple[str, ...]:
    return (
        _signed(row["change"]),
        f"{_signed(row['low'])} .. {_signed(row['high'])}",
        percent(row["a_share"], 2),
        percent(row["b_share"], 2),
        row["direction"],
        safe(row["name"]),
        safe(row["binary"]),
        safe(row["explained_by"] or ""),
        *_each(row, answer),
    )


def _signed(share: float) -> str:
    text = percent(share, 2)
    return text if share < 0 else "+" + text


def _rest(answer: Json) -> list[str]:
    hidden = answer["rows_total"] - len(answer["rows"])
    return [f"... and {hidden} more functions"] if hidden > 0 else []


def _plain(answer: Json) -> str:
    cells = [_titles(answer), *(_cells(row, answer) for row in answer["rows"])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) if i < _RIGHT else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    return "".join(f"{line.rstrip()}\n" for line in [*_head(answer), "", *lines, *_rest(answer)])


def _rich(answer: Json, width: int) -> str:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for i, title in enumerate(_titles(answer)):
        table.add_column(title, justify="right" if i < _RIGHT else "left", no_wrap=True, overflow="ellipsis", ratio=1 if i == 5 else None)
    for row in answer["rows"]:
        style = "dim" if row["is_noise"] else "dark_orange" if row["change"] > 0 else "blue"
        table.add_row(
            *(Text(cell, style=style if i in {0, 4} else "dim" if row["is_noise"] else "") for i, cell in enumerate(_cells(row, answer)))
        )
    console = Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False)
    with console.capture() as captured:
        for line in _head(answer):
            console.print(Text(line))
        console.print()
        console.print(table)
        for line in _rest(answer):
            console.print(Text(line, style="dim"))
    return captured.get()
