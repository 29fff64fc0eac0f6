# SPDX-License-Identifier: Apache-2.0
"""The list of binaries without names as text."""

import json
from enum import StrEnum
from typing import Any

from server.cli.formats import Paper, quantity, safe

ROWS_SHOWN = 30
_WHY = {
    "": "named",
    "reading": "being read",
    "waiting": "waiting for an agent",
    "not-asked": "no identity",
    "stripped": "stripped",
    "no-debug-data": "no debug data",
    "mismatch": "other build",
    "malformed": "malformed",
    "limit": "too large",
    "jit": "JIT without map",
    "hidden": "kernel hides it",
}
_KINDS = {2: "[kernel]", 3: "[kernel module]", 4: "[vdso]"}


class SymbolFormat(StrEnum):
    """How the list is printed."""

    TABLE = "table"
    JSON = "json"


def render_symbols(body: bytes, wanted: SymbolFormat, paper: Paper) -> str:
    """Make text of the answer of GET /api/v1/symbols; ends in a newline."""
    answer = json.loads(body)
    if wanted is SymbolFormat.JSON:
        return json.dumps(answer, indent=2 if paper.is_terminal else None) + "\n"
    rows = [_cells(row) for row in answer["binaries"] if row["unnamed_ns"] or row["why"] not in ("", "no-debug-data")]
    rows += [_mark_cells(row) for row in answer["marks"]]
    if not rows:
        return f"all {answer['binaries_total']} binaries have names\n" if answer["binaries_total"] else "no binary ran in this range\n"
    rows.sort(key=lambda row: -row[0])
    head = ("unnamed", "why", "build id", "binary", "what mends it")
    cells = [head, *((quantity(unnamed, "ns"), *words) for unnamed, *words in rows[:ROWS_SHOWN])]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [
        "  ".join([row[0].rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]) for row in cells
    ]
    rest = [f"{len(rows) - ROWS_SHOWN} more: --format json"] if len(rows) > ROWS_SHOWN else []
    return "".join(f"{line.rstrip()}\n" for line in [*lines, *rest])


def _cells(row: dict[str, Any]) -> tuple[int, str, str, str, str]:
    path = safe(row["path"]) or _KINDS.get(row["kind"], "(no path)")
    return row["unnamed_ns"], _WHY.get(row["why"], row["why"]), row["build_id"][:16], path, safe(row["remedy"]["command"])


def _mark_cells(row: dict[str, Any]) -> tuple[int, str, str, str, str]:
    return (
        row["unnamed_ns"],
        _WHY.get(row["why"], row["why"]),
        "",
        f"{row['mark']} of {safe(row['service'])}",
        safe(row["remedy"]["command"]),
    )
