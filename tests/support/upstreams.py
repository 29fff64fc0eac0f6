# SPDX-License-Identifier: Apache-2.0
"""Debuginfod servers for tests: one that is honest, and the same one lying, stalling, redirecting and failing."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

DEADLINE_S = 60.0


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something has become so."""
    end_s = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < end_s, "it never became so"
        time.sleep(0.02)


class Upstreams:
    """A server on a port of its own. `files` by build id in hex; `answer` replaces what is said; `asked` lists the paths."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.is_over = Event()
        """Set at the end: what stalls stops then."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                try:
                    (outer.answer or outer.honest)(self)
                except (BrokenPipeError, ConnectionResetError):
                    return

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Upstreams:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def honest(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer with the file that was asked for, or 404."""
        _, kind, digits, what = ([*handler.path.split("/"), "", "", ""])[:4]
        body = self.files.get(digits) if (kind, what) == ("buildid", "debuginfo") else None
        send(handler, 404 if body is None else 200, body or b"not found")


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, size_bytes: int | None = None, **headers: str) -> None:
    """Answer; `size_bytes` is what Content-Length claims, when it is not the truth."""
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if size_bytes is None else size_bytes))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
