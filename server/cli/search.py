# SPDX-License-Identifier: Apache-2.0
"""`emberwatch search`: which services spend time in a function, as a table or as JSON."""

import json
from enum import StrEnum

from server.cli.formats import Json, Paper, percent, quantity, safe

_BARS = " ▁▂▃▄▅▆▇█"
_TITLES = ("total", "of service", "of fleet", "self", "hosts", "trend", "service", "functions")
_RIGHT = 5
"""Columns from the left that are set to the right."""


class SearchFormat(StrEnum):
    """How it is printed."""

    TABLE = "table"
    JSON = "json"


def render_search(body: bytes, wanted: SearchFormat, paper: Paper) -> str:
    """Make text of the answer of /api/v1/search; ends in a newline."""
    answer: Json = json.loads(body)
    if wanted is SearchFormat.JSON:
        return json.dumps(answer, indent=2 if paper.is_terminal else None) + "\n"
    if not answer["services"]:
        return f"no function that matches {safe(answer['search'])} ran in this range\n"
    head = f"{quantity(answer['total'], answer['unit'])}, {percent(answer['share'])} of the fleet, in {answer['services_total']} services"
    cells = [_TITLES, *(_cells(row, answer["unit"]) for row in answer["services"])]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_TITLES))]
    lines = [
        "  ".join(cell.rjust(width) if i < _RIGHT else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    hidden = answer["services_total"] - len(answer["services"])
    rest = [f"... and {hidden} more services"] if hidden else []
    return "".join(f"{line.rstrip()}\n" for line in [head, "", *lines, *rest])


def _cells(row: Json, unit: str) -> tuple[str, ...]:
    names = ", ".join(safe(function["name"]) for function in row["functions"])
    more = row["functions_total"] - len(row["functions"])
    return (
        quantity(row["total"], unit),
        percent(row["share"]),
        percent(row["fleet_share"]),
        quantity(row["self"], unit),
        str(row["hosts"]),
        bars(row["trend"]),
        safe(row["service"]),
        names + (f" and {more} more" if more else ""),
    )


def bars(trend: list[float | None]) -> str:
    """Draw a trend in one line, from nothing to its largest; a blank where there is no data."""
    most = max((share for share in trend if share is not None), default=0.0) or 1.0
    return "".join(" " if share is None else _BARS[1 + round(share / most * (len(_BARS) - 2))] for share in trend)
