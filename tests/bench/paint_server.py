# SPDX-License-Identifier: Apache-2.0
"""Serves the pages that are timed, the page's own modules and the peers' files, on loopback."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).parent / "pages"
NODE_MODULES = ROOT / ".venv" / "node" / "node_modules"
SPEEDSCOPE = NODE_MODULES / "speedscope" / "dist" / "release"
FOLDERS = {"pages": PAGES, "web": ROOT / "web", "node": NODE_MODULES, "speedscope": SPEEDSCOPE}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".woff2": "font/woff2"}


@contextmanager
def served(data: Mapping[str, bytes | Callable[[], bytes]]) -> Iterator[str]:
    """Serve `data`, by path (bytes, or what makes them), and the files of FOLDERS; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            found = data.get(path) or _file(path)
            body = found() if callable(found) else found
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", TYPES.get(Path(path).suffix, "application/octet-stream"))
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _file(path: str) -> bytes | None:
    """The file behind /FOLDER/NAME."""
    folder, _, name = path.lstrip("/").partition("/")
    if folder not in FOLDERS:
        return None
    file = (FOLDERS[folder] / name).resolve()
    return file.read_bytes() if file.is_relative_to(FOLDERS[folder].resolve()) and file.is_file() else None
