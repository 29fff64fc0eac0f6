# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a question: a sentence, where it is wrong, and what to write instead."""

import difflib
from collections.abc import Iterable

from server.errors import BadRequest


class QueryError(BadRequest):
    """A question that cannot be answered as it stands. `text` is what was asked; `position` counts its characters from 0."""

    def __init__(self, message: str, *, hint: str = "", text: str = "", position: int | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.text = text
        self.position = position

    def in_lines(self) -> str:
        """Show message, question and a caret under the place, for a terminal."""
        lines = [str(self)]
        if self.position is not None:
            shown = "".join(c if c.isprintable() else "?" for c in self.text)
            lines += [f"  {shown}", f"  {' ' * self.position}^"]
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give a hint that names the nearest of the known words, or all of them when none is near."""
    words = sorted(set(known))
    near = difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(words[:20])}" if words else ""
