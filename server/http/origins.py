# SPDX-License-Identifier: Apache-2.0
"""Answers only to the server's own names. Without it any page a person has open could make its own name stand for this server's address
(DNS rebinding), read the profiles with the person's browser, and write.

An address in numbers cannot be made to stand for another one, so it is always taken.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from flask import Flask, Response, request

from server.http.failures import failure

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_OPEN_TO_ALL = "/healthz"
"""Probes go by whatever name they have; it tells what fails, and nothing of what is profiled."""


def guard_origins(app: Flask, page_url: str) -> None:
    """Refuse what is asked by another name than localhost, an address, this machine's names or that of `page_url`."""
    names, own_place = _own_names(page_url), _place_of(page_url)

    @app.before_request
    def refuse() -> Response | None:
        host = _name_of(f"//{request.host}")
        if request.path != _OPEN_TO_ALL and not _is_own(host, names):
            return failure(421, f"this server is not {host[:100]!r}", "open it by its address, or set page_url to what people type")
        origin = request.headers.get("Origin", "")
        is_own_page = origin == "" or _place_of(origin) in {request.host.lower(), own_place}
        if request.method not in _SAFE_METHODS and not is_own_page:
            return failure(403, "pages of other sites may not write here", "send it without Origin, or from this server's page")
        return None


def _own_names(page_url: str) -> frozenset[str]:
    machine = socket.gethostname().lower()
    names = {"localhost", machine, machine.partition(".")[0], _name_of(page_url)}
    return frozenset(names - {""})


def _is_own(host: str, names: frozenset[str]) -> bool:
    if host in names:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _place_of(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _name_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
