# SPDX-License-Identifier: Apache-2.0
"""Questions to a running server over its API, as a command asks them."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from server.errors import BadRequest, ServerError
from server.query.complaint import QueryError

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Api:
    """The API of the server at `url` (scheme, host and port)."""

    url: str

    def get(self, path: str, **parameters: str) -> bytes:
        """The body of GET /api/v1/PATH. Raises BadRequest with the server's own words, or ServerError when it cannot be asked."""
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            raise BadRequest(_words(error, parameters.get("query", ""))) from error
        except OSError as error:
            raise ServerError(f"no answer from {self.url}: {error}; is the server running there (emberwatch up, or --server)?") from error

    def get_json(self, path: str, **parameters: str) -> dict[str, Any]:
        """The answer as an object."""
        answer: dict[str, Any] = json.loads(self.get(path, **parameters))
        return answer

    def await_names(self, timeout_s: float) -> None:
        """Wait until the server looks for no names any more, or the time is over: names that come later are shown later."""
        until_s = time.monotonic() + timeout_s
        while self.get_json("symbols")["pending"] and time.monotonic() < until_s:
            time.sleep(0.1)


def _words(error: urllib.error.HTTPError, question: str) -> str:
    """What the server said, with a caret under the place and its hint; its status line when it said nothing we know."""
    try:
        said = json.loads(error.read())["error"]
        return QueryError(said["message"], hint=said.get("hint") or "", text=question, position=said.get("position")).in_lines()
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code} {error.reason}"
