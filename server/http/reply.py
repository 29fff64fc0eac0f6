# SPDX-License-Identifier: Apache-2.0
"""What answers have in common: JSON without surprises, headers that keep a browser safe, compression when it pays."""

import gzip
from collections.abc import Mapping
from typing import Any

import zstandard
from flask import Flask, Response, request

from server.http.packed import PACKED_TYPE, json_bytes, packed

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SMALLEST_COMPRESSED_BYTES = 1400
"""Below, an answer fits one packet anyway."""
_COMPRESSIBLE = ("application/json", PACKED_TYPE, "text/", "image/svg+xml")


def json_response(value: Mapping[str, Any], status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json_bytes(value), status, mimetype="application/json")


def graph_response(value: Mapping[str, Any]) -> Response:
    """Answer with a graph, packed for who names that in Accept (`*/*` does not)."""
    is_packed = PACKED_TYPE in request.accept_mimetypes.values()
    response = Response(packed(value), mimetype=PACKED_TYPE) if is_packed else json_response(value)
    response.vary.add("Accept")
    return response


def text_response(text: str, file_name: str | None = None) -> Response:
    """Answer with plain text, as a file to keep when it has a name (one of ours, never from data)."""
    response = Response(text.encode("utf-8", "backslashreplace"), mimetype="text/plain")
    if file_name:
        response.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


def dress_replies(app: Flask) -> None:
    """Lay headers and compression on every answer of the app."""

    @app.after_request
    def dress(response: Response) -> Response:
        for name, value in SECURITY_HEADERS.items():
            response.headers[name] = value
        if "Cache-Control" not in response.headers:
            response.headers["Cache-Control"] = "no-store"
        return _compress(response)


def _compress(response: Response) -> Response:
    if response.direct_passthrough or response.status_code != 200 or not (response.mimetype or "").startswith(_COMPRESSIBLE):
        return response
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if len(body) < SMALLEST_COMPRESSED_BYTES:
        return response
    accepted = request.accept_encodings
    if accepted["zstd"] > 0:
        response.set_data(zstandard.ZstdCompressor(level=3).compress(body))
        response.headers["Content-Encoding"] = "zstd"
    elif accepted["gzip"] > 0:
        response.set_data(gzip.compress(body, compresslevel=5, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
