# SPDX-License-Identifier: Apache-2.0
"""Selectors as in PromQL: `cpu{service="checkout",version=~"2.4.*",host!="a"}`.

    selector = kind [ "{" [ matcher { "," matcher } [ "," ] ] "}" ]
    matcher  = label ( "=" | "!=" | "=~" | "!~" ) string

Strings stand in double quotes, single quotes or backquotes; backslash escapes as in Go but for octal, none in backquotes.
A label that a series does not have counts as empty; regexes match whole values. Three labels are of rows, not of series: `class`
(wait class), `object` (lock, call, peer) and `thread`; they choose rows among those of the series.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from server.query.complaint import QueryError, did_you_mean
from server.query.regex import full_match

MOST_CHARACTERS = 10_000
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


ROW_LABELS = ("class", "object", "thread")


class Operator(StrEnum):
    """How a label is compared."""

    EQUAL = "="
    NOT_EQUAL = "!="
    MATCHES = "=~"
    MATCHES_NOT = "!~"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on one label."""

    label: str
    operator: Operator
    value: str
    position: int = 0
    """Where it stands in the text."""

    def test(self) -> Callable[[str], bool]:
        """Give the test of a value. Raises QueryError for a bad regex."""
        value = self.value
        match self.operator:
            case Operator.EQUAL:
                return lambda text: text == value
            case Operator.NOT_EQUAL:
                return lambda text: text != value
            case Operator.MATCHES:
                return full_match(value)
            case Operator.MATCHES_NOT:
                matches = full_match(value)
                return lambda text: not matches(text)


@dataclass(frozen=True, slots=True)
class Selector:
    """A kind, and conditions that must all hold."""

    kind: str
    matchers: tuple[Matcher, ...] = ()
    text: str = ""

    @property
    def of_series(self) -> tuple[Matcher, ...]:
        """Conditions on labels of series."""
        return tuple(matcher for matcher in self.matchers if matcher.label not in ROW_LABELS)

    @property
    def of_rows(self) -> tuple[Matcher, ...]:
        """Conditions on labels of rows."""
        return tuple(matcher for matcher in self.matchers if matcher.label in ROW_LABELS)

    def test(self) -> Callable[[Mapping[str, str]], bool]:
        """Give the test of a series' labels."""
        tests = [(matcher.label, matcher.test()) for matcher in self.of_series]
        return lambda labels: all(matches(labels.get(label, "")) for label, matches in tests)


def parse_selector(text: str) -> Selector:
    """Read a selector. Raises QueryError with position and hint."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"the selector has {len(text)} characters; at most {MOST_CHARACTERS} are taken")
    return _Reader(text).selector()


def check_names(selector: Selector, kinds: Collection[str], labels: Collection[str]) -> None:
    """Raise QueryError when the kind or a label is not known at all, naming the nearest that is. Nothing known allows all."""
    if kinds and selector.kind not in kinds:
        raise QueryError(f"there is no kind {selector.kind!r}", hint=did_you_mean(selector.kind, kinds), text=selector.text, position=0)
    for matcher in selector.matchers:
        if labels and matcher.label not in labels:
            raise QueryError(
                f"no series has a label {matcher.label!r}",
                hint=did_you_mean(matcher.label, labels),
                text=selector.text,
                position=matcher.position,
            )


class _Reader:
    """Reads one selector from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def selector(self) -> Selector:
        self._skip_space()
        if self._peek() == "{":
            raise self._error("the kind is missing", f"write cpu{self._text.strip()}")
        kind = self._word("a kind, for example cpu")
        self._skip_space()
        matchers: list[Matcher] = []
        if self._take("{"):
            while not self._take("}"):
                matchers.append(self._matcher())
                if not self._take(",") and self._peek() != "}":
                    raise self._error("expected , or } after a condition", f'a selector looks like {kind}{{service="checkout"}}')
        if self._at < len(self._text):
            raise self._error("nothing may follow the selector")
        return Selector(kind, tuple(matchers), self._text)

    def _matcher(self) -> Matcher:
        start = self._at
        label = self._word("a label, for example service")
        self._skip_space()
        operator = next((op for op in ("=~", "!~", "!=", "=") if self._text.startswith(op, self._at)), None)
        if operator is None:
            raise self._error(f"expected =, !=, =~ or !~ after {label}")
        self._at += len(operator)
        if self._peek() == "=":
            raise self._error("== is not an operator here", f'write {label}="..."')
        self._skip_space()
        value_at = self._at
        matcher = Matcher(label, Operator(operator), self._string(label), start)
        self._skip_space()
        try:
            matcher.test()
        except QueryError as error:
            raise QueryError(str(error), hint=error.hint, text=self._text, position=value_at) from error
        return matcher

    def _word(self, what: str) -> str:
        found = _WORD.match(self._text, self._at)
        if not found:
            raise self._error(f"expected {what}")
        self._at = found.end()
        return found.group()

    def _string(self, label: str) -> str:
        quote, start = self._peek(), self._at
        if quote not in {'"', "'", "`"}:
            raise self._error(f"the value of {label} must stand in quotes", f'write {label}="{self._bare_value()}"')
        self._at += 1
        parts: list[str] = []
        while self._peek() != quote:
            if self._at >= len(self._text):
                self._at = start
                raise self._error(f"the value of {label} has no closing {quote}")
            parts.append(self._escaped() if self._peek() == "\\" and quote != "`" else self._peek())
            self._at += 1
        self._at += 1
        return "".join(parts)

    def _escaped(self) -> str:
        """Read one escape and stop on its last character."""
        found = _ESCAPE.match(self._text, self._at)
        if not found:
            raise self._error("this escape is not known", r"in regexes a backslash is written twice, or the string in backquotes: `2\.4`")
        simple, *codes = found.groups()
        code = int(next((c for c in codes if c), "0"), 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self._error("this escape is no character")
        self._at = found.end() - 1
        return _SIMPLE.get(simple, simple) if simple else chr(code)

    def _bare_value(self) -> str:
        return re.split(r"[,}\s\"'`\\]", self._text[self._at :], maxsplit=1)[0] or "..."

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> bool:
        self._skip_space()
        if self._peek() != character:
            return False
        self._at += 1
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _error(self, message: str, hint: str = "") -> QueryError:
        found = "the end" if self._at >= len(self._text) else repr(self._peek())
        return QueryError(f"{message}; found {found} at character {self._at + 1}", hint=hint, text=self._text, position=self._at)
