# SPDX-License-Identifier: Apache-2.0
"""The page: index.html for every view, and its files under /assets/. Only known types in the packaged folder are served."""

import hashlib
import re
from importlib.resources.abc import Traversable

from flask import Blueprint, Response, request

from server.http.failures import NotThere
from server.http.services import AppServices

CONTENT_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "webmanifest": "application/manifest+json",
}
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
MOST_PARTS = 6


def page_blueprint(services: AppServices) -> Blueprint:
    """Make the routes."""
    page = Blueprint("page", __name__)

    @page.get("/")
    @page.get("/index.html")
    @page.get("/compare")
    @page.get("/deploys")
    @page.get("/deploys/<_name>")
    @page.get("/events")
    @page.get("/shared/<_name>")
    @page.get("/heat/<path:_name>")
    @page.get("/hosts")
    @page.get("/search")
    @page.get("/symbols")
    @page.get("/service/<path:_name>")
    def index(_name: str = "") -> Response:
        return _file(services.page_files, "index.html")

    @page.get("/assets/<path:path>")
    def asset(path: str) -> Response:
        return _file(services.page_files, path)

    return page


def _file(folder: Traversable, path: str) -> Response:
    parts = path.split("/")
    content_type = CONTENT_TYPES.get(path.rpartition(".")[2])
    if content_type is None or len(parts) > MOST_PARTS or not all(_PART.fullmatch(part) for part in parts):
        raise NotThere(f"there is no file {path[:100]!r}")
    file = folder.joinpath(*parts)
    try:
        body = file.read_bytes()
    except OSError as error:
        raise NotThere(f"there is no file {path[:100]!r}") from error
    response = Response(body, mimetype=content_type)
    response.headers["Cache-Control"] = "no-cache"  # keep, but ask whether it is still the one
    response.set_etag(hashlib.blake2b(body, digest_size=12).hexdigest(), weak=True)
    response.make_conditional(request)
    return response
