# SPDX-License-Identifier: Apache-2.0
"""What is sent to be written: a small JSON object, read as strictly as parameters are."""

import json
from collections.abc import Collection, Mapping

from flask import request

from server.errors import LimitExceeded, ServerError
from server.query.complaint import QueryError

MOST_BODY_BYTES = 16_384
MOST_LABEL_CHARACTERS = 512


class NotJson(ServerError):
    """What was sent is of another type."""


def posted_object(fields: Collection[str], hint: str) -> Mapping[str, object]:
    """Give the object that was sent. Raises NotJson, LimitExceeded or QueryError.

    Only JSON: a form on a foreign site cannot send that without asking first, and nobody answers that question here.
    """
    if request.mimetype != "application/json":
        raise NotJson("what is written is sent as JSON")
    if (request.content_length or 0) > MOST_BODY_BYTES:
        raise LimitExceeded(f"what is written has at most {MOST_BODY_BYTES} bytes")
    try:
        given = json.loads(request.stream.read(MOST_BODY_BYTES))
    except (ValueError, RecursionError) as error:
        raise QueryError("what was sent is no JSON", hint=hint) from error
    if not isinstance(given, dict) or not given.keys() <= set(fields):
        raise QueryError(f"what is sent must be an object with {', '.join(sorted(fields))}, and nothing else", hint=hint)
    return given


def posted_text(given: Mapping[str, object], name: str, most: int = MOST_LABEL_CHARACTERS, least: int = 1) -> str:
    """Give a text of so many characters that can be stored."""
    value = given.get(name)
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise QueryError(f"{name} must be a text of {least} to {most} characters")
    if "\0" in value or value.encode("utf-8", "replace").decode() != value:
        raise QueryError(f"{name} holds a character that cannot be stored")
    return value


def posted_number(given: Mapping[str, object], name: str, most: float) -> float:
    """Give a number from 0 on."""
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise QueryError(f"{name} must be a number from 0 to {most:g}")
    return float(value)
