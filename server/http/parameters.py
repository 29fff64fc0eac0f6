# SPDX-License-Identifier: Apache-2.0
"""Parameters of a request, read strictly: unknown names, doubled ones and values that make no sense are told, not passed over."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import TypeVar

from werkzeug.datastructures import MultiDict

from server.profile.packages import Unit
from server.query.branches import Stacks
from server.query.complaint import QueryError, did_you_mean
from server.query.idle import Idle
from server.query.kinds import DEFAULT_KIND
from server.query.operators import Operators
from server.query.profile_query import Question
from server.query.regex import SearchMode
from server.query.selector import Selector, parse_selector
from server.query.slots import Slots, choose_slots
from server.query.timerange import TimeRange, parse_duration_ns, parse_range

RANGE = ("from", "until")
FRAMES = ("focus", "ignore", "callers", "callees")
OPERATORS = (*FRAMES, "by", "hide_kernel", "collapse", "invert")
QUESTION = ("query", *RANGE, "column", "group", *OPERATORS, "idle", "stacks")
NO_GROUP = "none"
_RATE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")
_Choice = TypeVar("_Choice", bound=StrEnum)


class Parameters:
    """The parameters of one request."""

    def __init__(self, given: "MultiDict[str, str]", allowed: Collection[str], now_unix_ns: int) -> None:
        """Raises QueryError for a name that is not allowed or comes twice."""
        for name in given:
            if name not in allowed:
                raise QueryError(f"there is no parameter {name[:60]!r} here", hint=did_you_mean(name[:60], allowed))
            if len(given.getlist(name)) > 1:
                raise QueryError(f"the parameter {name} is given more than once")
        self._given = given
        self._now_unix_ns = now_unix_ns

    def text(self, name: str, default: str = "") -> str:
        """Give a text; an empty one counts as not given."""
        return self._given.get(name) or default

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Give a whole number between `least` and `most`."""
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most):
            raise QueryError(f"{name} is {text[:40]!r}; it must be a whole number from {least} to {most}")
        return int(text)

    def rate(self, name: str) -> float:
        """Give a number above 0 with a fraction or without, 0 when there is none."""
        text = self.text(name)
        if not text:
            return 0.0
        if not _RATE.fullmatch(text) or float(text) == 0:
            raise QueryError(f"{name} is {text[:40]!r}; it must be a number of requests a second, above 0")
        return float(text)

    def flag(self, name: str) -> bool:
        """Give yes or no, written 1 or 0."""
        return self.number(name, 0, 0, 1) == 1

    def choice(self, name: str, default: _Choice) -> _Choice:
        """Give one of the words of an enum."""
        text = self.text(name, default)
        words = [str(word) for word in type(default)]
        if text not in words:
            raise QueryError(f"{name} is {text[:40]!r}; it must be one of {', '.join(words)}", hint=did_you_mean(text[:40], words))
        return type(default)(text)

    def range(self) -> TimeRange:
        """Give the range, by default the last 15 minutes."""
        return parse_range(self.text("from", "-15m"), self.text("until", "now"), self._now_unix_ns)

    def slots(self, most: int = 240) -> Slots:
        """Give the range in steps."""
        step = self.text("step")
        return choose_slots(self.range(), parse_duration_ns(step) if step else None, most)

    def selector(self) -> Selector:
        """Give the selector, by default everything on CPU."""
        return parse_selector(self.text("query", f"{DEFAULT_KIND}{{}}"))

    def question(self) -> Question:
        """Give the whole question."""
        return Question(
            selector=self.selector(),
            range=self.range(),
            column=self.text("column"),
            group=self.group(),
            operators=self.operators(),
            idle=self.choice("idle", Idle.SHOW),
            stacks=self.choice("stacks", Stacks.FIRST),
        )

    def side(self, name: str, is_counted: bool = False) -> Question:
        """Give the question of one side of a diff: NAME, NAME_from and NAME_until before query, from and until."""
        start, end = (self.text(f"{name}_{which}", self.text(which, default)) for which, default in (("from", "-15m"), ("until", "now")))
        return Question(
            selector=parse_selector(self.text(name, self.text("query", f"{DEFAULT_KIND}{{}}"))),
            range=parse_range(start, end, self._now_unix_ns),
            column=self.text("column"),
            group=self.group(),
            operators=self.operators(),
            is_counted=is_counted,
            requests_per_s=self.rate(f"{name}_rate"),
            idle=self.choice("idle", Idle.SHOW),
        )

    def group(self) -> str:
        """Give what stands as a level of its own above the frames, "" for nothing."""
        text = self.text("group")
        return "" if text == NO_GROUP else text

    def operators(self) -> Operators:
        """Give what is done to frames. Raises QueryError for what no graph can answer."""
        frames = {name: self.text(name) for name in FRAMES}
        made = Operators(
            **frames,
            unit=self.choice("by", Unit.FUNCTION),
            is_without_kernel=self.flag("hide_kernel"),
            is_collapsed=self.flag("collapse"),
            is_inverted=self.flag("invert"),
        )
        made.check()
        return made

    def mode(self) -> SearchMode:
        """Give how the search text is meant."""
        return self.choice("mode", SearchMode.TEXT)
