# SPDX-License-Identifier: Apache-2.0
"""Questions to a running server over its API, as a command asks them."""

import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.errors import BadRequest, Overloaded, ServerError
from server.query.complaint import QueryError

_TIMEOUT_S = 60.0
_TRY_AGAIN = 503
_UNPRINTABLE = re.compile(r"[^!-~]")
_KINDS = ("application/json", "text/plain")
"""What the API answers with."""


def api_at(given: str) -> "Api":
    """The API at HOST:PORT or http(s)://HOST:PORT. Raises BadRequest for anything else."""
    url = (given if "://" in given else f"http://{given}").rstrip("/")
    try:
        parts = urllib.parse.urlsplit(url)
        makes_sense = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and not _UNPRINTABLE.search(given)
    except ValueError:
        makes_sense = False
    if not makes_sense:
        raise BadRequest(f"{given!r} is not the address of a server: write http://HOST:PORT")
    return Api(url)


def is_text(given: str) -> bool:
    """False for what the shell handed over in bytes that are no UTF-8."""
    return not any(0xD800 <= ord(c) < 0xE000 for c in given)


@dataclass(frozen=True, slots=True)
class Api:
    """The API of the server at `url` (scheme, host and port)."""

    url: str

    def get(self, path: str, **parameters: str) -> bytes:
        """The body of GET /api/v1/PATH. Raises BadRequest with the server's own words, or ServerError when it cannot be asked."""
        for name, value in parameters.items():
            if not is_text(value):
                raise BadRequest(f"{name} is not valid UTF-8: {value!r}")
        return self._answer(
            urllib.request.Request(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"), parameters.get("query", "")
        )

    def post_json(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The answer to POST /api/v1/PATH of a JSON object. Raises as `get` does."""
        raw = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self._object(self._answer(urllib.request.Request(f"{self.url}/api/v1/{path}", raw, headers, method="POST"), ""))

    def put(self, path: str, data: bytes, content_range: str) -> dict[str, Any]:
        """The answer to a piece of a file. Raises as `get` does, and Overloaded when the same piece may be sent again later."""
        headers = {"Content-Type": "application/octet-stream", "Content-Range": content_range}
        return self._object(self._answer(urllib.request.Request(f"{self.url}/api/v1/{path}", data, headers, method="PUT"), ""))

    def _answer(self, request: urllib.request.Request, question: str) -> bytes:
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                body: bytes = answer.read()
                kind = answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            refusal = Overloaded if error.code == _TRY_AGAIN else BadRequest
            raise refusal(_words(error, self.url, question)) from error
        except http.client.HTTPException as error:
            raise self._stranger() from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            said = getattr(reason, "strerror", None) or reason
            raise ServerError(f"no answer from {self.url}: {said}; is the server running there (emberwatch up, or --server)?") from error
        if kind not in _KINDS:
            raise self._stranger()
        return body

    def _stranger(self) -> ServerError:
        return ServerError(f"what answers at {self.url} is no Emberwatch server: choose the address of its page with --server")

    def get_json(self, path: str, **parameters: str) -> dict[str, Any]:
        """The answer as an object."""
        return self._object(self.get(path, **parameters))

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise self._stranger() from error
        if not isinstance(answer, dict):
            raise self._stranger()
        return answer

    def await_names(self, timeout_s: float) -> None:
        """Wait until the server looks for no names any more, or the time is over: names that come later are shown later."""
        until_s = time.monotonic() + timeout_s
        while self.get_json("symbols", limit="1")["pending"] and time.monotonic() < until_s:
            time.sleep(0.1)


def _words(error: urllib.error.HTTPError, url: str, question: str) -> str:
    """What the server said, with a caret when one question was asked; its status line when it said nothing we know."""
    try:
        said = json.loads(error.read())["error"]
        position = said.get("position") if question else None
        return QueryError(said["message"], hint=said.get("hint") or "", text=question, position=position).in_lines()
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return f"{url} answered {error.code} {error.reason}"
