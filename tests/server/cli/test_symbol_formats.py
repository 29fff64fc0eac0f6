# SPDX-License-Identifier: Apache-2.0
"""The list of binaries without names, and that no path reaches the terminal as more than text."""

import json
from typing import Any

from server.cli.formats import Paper
from server.cli.symbol_formats import SymbolFormat, render_symbols


def row(path: str, unnamed_s: int, why: str, command: str, build_id: str = "12" * 20) -> dict[str, Any]:
    remedy = {"words": "", "command": command}
    return {"path": path, "kind": 1, "build_id": build_id, "unnamed_ns": unnamed_s * 10**9, "why": why, "remedy": remedy}


def body(*rows: dict[str, Any], marks: tuple[dict[str, Any], ...] = ()) -> bytes:
    return json.dumps({"binaries": rows, "binaries_total": len(rows), "marks": marks, "pending": 0}).encode()


def render(data: bytes) -> str:
    return render_symbols(data, SymbolFormat.TABLE, Paper())


def test_most_time_without_names_first() -> None:
    mark = {"service": "shop", "mark": "[jit]", "why": "jit", "unnamed_ns": 23 * 10**9, "remedy": {"words": "", "command": "java -XX:x"}}
    text = render(
        body(
            row("/opt/app", 7, "stripped", "emberwatch symbols upload app"),
            row("/usr/bin/named", 0, "", ""),
            row("/usr/bin/lines", 0, "no-debug-data", "x"),
            row("/tmp/\x1b[2J", 1, "waiting", "emberwatch symbols upload FILE", ""),
            marks=(mark,),
        )
    )
    assert text.splitlines() == [
        "unnamed  why                   build id          binary         what mends it",
        "   23 s  JIT without map                         [jit] of shop  java -XX:x",
        "    7 s  stripped              1212121212121212  /opt/app       emberwatch symbols upload app",
        "    1 s  waiting for an agent                    /tmp/\\x1b[2J   emberwatch symbols upload FILE",
    ]


def test_nothing_to_mend() -> None:
    assert render(body(row("/usr/bin/named", 0, "", ""))) == "all 1 binaries have names\n"
    assert render(body()) == "no binary ran in this range\n"
    assert json.loads(render_symbols(body(), SymbolFormat.JSON, Paper(True)))["pending"] == 0


def test_long_list_is_cut_and_says_so() -> None:
    text = render(body(*(row(f"/bin/{number}", 100 - number, "stripped", "x") for number in range(37))))
    assert text.splitlines()[-1] == "7 more: --format json"
