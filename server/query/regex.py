# SPDX-License-Identifier: Apache-2.0
"""Regular expressions by RE2: linear time, so that no pattern from outside can hang the server."""

from collections.abc import Callable
from enum import StrEnum

import re2

from server.query.complaint import QueryError

MOST_CHARACTERS = 1000
_MEMORY_BYTES = 8 << 20


class SearchMode(StrEnum):
    """How a search text is meant."""

    TEXT = "text"
    """Found anywhere in the name, whatever its case."""
    REGEX = "regex"
    """RE2, found anywhere in the name."""


def full_match(pattern: str) -> Callable[[str], bool]:
    """Give the test whether a whole text matches, as =~ of PromQL does. Raises QueryError for what RE2 does not take."""
    match = _compiled(pattern).fullmatch
    return lambda text: match(_encoded(text)) is not None


def search(text: str, mode: SearchMode) -> Callable[[str], bool]:
    """Give the test whether a name matches a search. Raises QueryError for what RE2 does not take."""
    if mode is SearchMode.REGEX:
        find = _compiled(text).search
        return lambda name: find(_encoded(name)) is not None
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"the search text has {len(text)} characters; at most {MOST_CHARACTERS} are taken")
    needle = text.casefold()
    return lambda name: needle in name.casefold()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _compiled(pattern: str) -> "re2._Regexp":
    if len(pattern) > MOST_CHARACTERS:
        raise QueryError(f"the regex has {len(pattern)} characters; at most {MOST_CHARACTERS} are taken")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else b"not understood"
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        hint = "regexes are RE2's: no look-around, no back-references"
        raise QueryError(f"the regex {pattern!r} is not valid: {words}", hint=hint, text=pattern) from error
