# SPDX-License-Identifier: Apache-2.0
"""The stand-in's symbol desk: binaries in every state, and a taker of files."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.page_profiles import Json

SECOND_NS = 10**9


def symbols_answer(scenario: str, now_s: float) -> Json:
    """The answer of GET /api/v1/symbols."""
    if scenario == "empty":
        return {"binaries": [], "binaries_total": 0, "marks": [], "pending": 0}
    jit = {
        "service": "search-api",
        "mark": "[jit]",
        "why": "jit",
        "remedy": _remedy("Have the run time write a perf map.", "java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit"),
        "unnamed_ns": 137 * SECOND_NS,
    }
    rows = _rows(now_s)
    return {"binaries": rows, "binaries_total": len(rows), "marks": [jit], "pending": 2}


def _remedy(words: str, command: str) -> dict[str, str]:
    return {"words": words, "command": command}


def _source(origin: str, outcome: str, at_s: float, *words: str) -> Json:
    place, reason, quality = (*words, "", "", "")[:3]
    return {"origin": origin, "place": place, "outcome": outcome, "reason": reason, "quality": quality, "at_s": at_s}


def _row(path: str, build_id: str, why: str, seconds: tuple[int, int], **more: Any) -> Json:
    """`seconds` without a name, and of all."""
    usual = {
        "id": f"{abs(hash(path)) % 16**8:08x}",
        "path": path,
        "build_id": build_id,
        "build_id_kind": "gnu" if build_id else "none",
        "kind": 1,
        "state": "named",
        "reason": "",
        "quality": "",
        "why": why,
        "remedy": _remedy("", ""),
        "since_s": 0.0,
        "cpu_ns": seconds[1] * SECOND_NS,
        "unnamed_ns": seconds[0] * SECOND_NS,
        "sources": [],
        "is_queued": False,
    }
    return usual | more


def _rows(now_s: float) -> list[Json]:
    upload = "emberwatch symbols upload "
    return [
        _row(
            "/usr/lib/x86_64-linux-gnu/libfoo.so.2", "9f" * 20, "stripped", (61, 64), quality="dynamic", since_s=now_s - 90_000,
            remedy=_remedy("Install its debug package on the server's host.", "apt install libfoo2-dbgsym"),
            sources=[
                _source("debuginfod", "not-found", now_s - 500, "https://debuginfod.debian.net", "does not have it"),
                _source("debug-root", "not-found", now_s - 800, "", "no debug file on this host"),
                _source("file", "ok", now_s - 90_000, "", "", "dynamic"),
            ],
            is_queued=True,
        ),
        _row(
            "/opt/payments/bin/payments", "3d" * 20, "mismatch", (23, 23), state="failed", since_s=now_s - 4000,
            reason="malformed: the file has build id 77, not 3d",
            remedy=_remedy("What was found is of another build. Upload the one with this build id.", f"{upload}payments"),
            sources=[_source("upload", "mismatch", now_s - 60, "", "another binary with the same build id: its code has another size")],
        ),
        _row("/usr/bin/node", "77" * 20, "waiting", (11, 11), state="wanted", reason="asked of the agents", since_s=now_s - 40,
             remedy=_remedy("The agents that run it are asked for it.", f"{upload}node")),
        _row(
            "/opt/</script><b>x</b>/plugin.so", "", "malformed", (7, 7), state="failed", since_s=now_s - 700,
            reason="malformed: the symbol table is cut off at byte 4,096", remedy=_remedy("The file cannot be read.", f"{upload}plugin.so"),
        ),
        _row("/opt/checkout/bin/checkout", "3c" * 20, "", (0, 900), quality="dwarf", since_s=now_s - 400_000,
             sources=[_source("agent", "ok", now_s - 399_000, "", "", "dwarf")]),
        _row("/usr/bin/postgres", "5e" * 20, "no-debug-data", (0, 310), quality="full", since_s=now_s - 400_000,
             remedy=_remedy("Upload its debug file for lines and inlined calls.", f"{upload}postgres")),
        _row("", "aa" * 20, "", (0, 120), kind=2, quality="full", since_s=now_s - 500_000),
    ]  # fmt: skip


class FakeFiles:
    """Takes files in pieces; refuses what is no ELF file, and with `failures` the first pieces."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.retried: list[str] = []
        self.failures = 0
        self._growing: dict[str, bytearray] = {}

    def received(self, path: str) -> bytes:
        """The answer to the question how far an upload came."""
        return json.dumps({"received": len(self._growing.get(path, b""))}).encode()

    def take(self, handler: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        """Status and answer to what is not a GET."""
        status, answer = self._take(handler)
        return status, json.dumps(answer).encode()

    def _take(self, handler: BaseHTTPRequestHandler) -> tuple[int, Json]:
        data = handler.rfile.read(int(handler.headers["Content-Length"]))
        if handler.path.endswith("/retry"):
            self.retried.append(json.loads(data)["id"])
            return 200, {"state": "pending", "reason": ""}
        if self.failures:
            self.failures -= 1
            return 503, {"error": {"message": "32 uploads are running already", "hint": "", "position": None}}
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", handler.headers["Content-Range"])
        assert found and handler.headers["Content-Type"] == "application/octet-stream"
        growing, size = self._growing.setdefault(handler.path, bytearray()), int(found[2])
        if int(found[1]) == len(growing):
            growing += data
        if len(growing) < size:
            return 200, {"received": len(growing), "size": size, "done": False}
        whole = bytes(self._growing.pop(handler.path))
        if whole[:4] != b"\x7fELF":
            return 400, {"error": {"message": "the file is refused: not an ELF file", "hint": "", "position": None}}
        self.taken.append(whole)
        return 200, {"received": size, "size": size, "done": True, "build_id": "9f" * 20, "binaries": 1, "known": False}
