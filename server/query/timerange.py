# SPDX-License-Identifier: Apache-2.0
"""Points and ranges of time as people write them: `now`, `-15m`, RFC 3339, unix seconds. Ranges are half open."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from server.query.complaint import QueryError

SECOND_NS = 10**9
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_RELATIVE = re.compile(r"(?:now)?-((?:\d+(?:\.\d+)?(?:ms|[smhdw]))+)", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_SECONDS = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
_MOST_S = 10**11
"""Year 5138; larger numbers are milliseconds or finer."""
MOST_RANGE_NS = 5 * 366 * 86_400 * SECOND_NS
_HINT = "write a time as -15m, now, 2026-01-31T12:00:00Z or unix seconds"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """[from_unix_ns, until_unix_ns), never empty."""

    from_unix_ns: int
    until_unix_ns: int

    @property
    def length_ns(self) -> int:
        """Nanoseconds between the two."""
        return self.until_unix_ns - self.from_unix_ns

    @property
    def from_s(self) -> float:
        """Start in unix seconds."""
        return self.from_unix_ns / SECOND_NS

    @property
    def until_s(self) -> float:
        """End in unix seconds."""
        return self.until_unix_ns / SECOND_NS


def parse_time(text: str, now_unix_ns: int) -> int:
    """Give the unix nanoseconds that `text` stands for. Raises QueryError."""
    text = text.strip()
    if text == "now":
        return now_unix_ns
    if found := _RELATIVE.fullmatch(text):
        return _checked(now_unix_ns - _duration_ns(found.group(1)), text)
    if _SECONDS.fullmatch(text):
        whole, _, fraction = text.partition(".")
        if len(whole) > 15 or int(whole) >= _MOST_S:
            raise QueryError(f"{_short(text)} is too large for unix seconds", hint=_HINT, text=text)
        return int(whole) * SECOND_NS + int(fraction[:9].ljust(9, "0"))
    if found := _RFC_3339.fullmatch(text):
        return _from_rfc_3339(text, has_zone=found.group(1) is not None)
    raise QueryError(f"{_short(text)!r} is not a time", hint=_HINT, text=text)


def parse_duration_ns(text: str) -> int:
    """Give the nanoseconds of a length like 30s or 1h30m, or of a bare number of seconds. Raises QueryError."""
    if _SECONDS.fullmatch(text) and len(text) < 16:
        return round(float(text) * SECOND_NS)
    if not _RELATIVE.fullmatch("-" + text):
        raise QueryError(f"{_short(text)!r} is not a length of time", hint="write 30s, 5m or 1h30m", text=text)
    return _duration_ns(text)


def parse_range(from_text: str, until_text: str, now_unix_ns: int) -> TimeRange:
    """Read both ends. Raises QueryError when one is no time, or the two make no range."""
    start, end = parse_time(from_text, now_unix_ns), parse_time(until_text, now_unix_ns)
    if start >= end:
        raise QueryError(f"the range is empty: from {show_time(start)} is not before until {show_time(end)}", hint="swap from and until")
    if start > now_unix_ns:
        raise QueryError(f"the range lies in the future: from {show_time(start)}, now is {show_time(now_unix_ns)}")
    if end - start > MOST_RANGE_NS:
        raise QueryError("the range is longer than 5 years", hint="ask for a shorter one")
    return TimeRange(start, end)


def show_time(unix_ns: int) -> str:
    """Write a time as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(unix_ns // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration_ns(text: str) -> int:
    if len(text) > 40:
        raise QueryError(f"{_short(text)!r} is not a length of time", hint="write 30s, 5m or 1h30m", text=text)
    return round(sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text)) * SECOND_NS)


def _from_rfc_3339(text: str, has_zone: bool) -> int:
    if not has_zone:
        raise QueryError(f"{text!r} does not say its zone", hint=f"write {text}Z for UTC", text=text)
    whole, _, rest = text.replace("z", "Z").replace("t", "T").partition(".")
    fraction = re.match(r"[0-9]*", rest)
    digits = fraction.group() if fraction else ""
    zone = rest[len(digits) :]
    try:
        moment = datetime.fromisoformat(whole + zone)
    except ValueError as error:
        raise QueryError(f"{text!r} is not a time: {error}", hint=_HINT, text=text) from error
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return _checked((since.days * 86_400 + since.seconds) * SECOND_NS + int(digits.ljust(9, "0") or "0"), text)


def _checked(unix_ns: int, text: str) -> int:
    if not 0 <= unix_ns < _MOST_S * SECOND_NS:
        raise QueryError(f"{_short(text)!r} is before 1970 or too far away", hint=_HINT, text=text)
    return unix_ns


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."
