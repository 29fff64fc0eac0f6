# SPDX-License-Identifier: Apache-2.0
"""The two sides of `emberwatch diff`: selectors are compared by a server, files (folded or pprof) here;
of a mixed pair the server gives folded stacks.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

from server.cli.ask import Api
from server.cli.diff_formats import ROWS_SHOWN, DiffFormat
from server.errors import BadRequest, ServerError
from server.http.diff_json import DiffSort, Search, diff_json, diff_table_json
from server.http.packed import json_bytes
from server.http.sizes import DEFAULT_WIDTH_PX
from server.interop.folded import FoldedLines, Imported, export_two_counts, import_text
from server.interop.folded_diff import FoldedSide, folded_diff
from server.interop.pprof import is_pprof, read_pprof
from server.profile.cut import View
from server.profile.diff import Shape
from server.query.complaint import QueryError
from server.query.operators import NO_OPERATORS, Operators
from server.query.selector import parse_selector

MOST_PPROF_BYTES = 512 << 20
MOST_LINE_BYTES = 64 << 20
"""A stack of 30,000 frames with names of 2,000 characters."""
_PPROF_HEAD_BYTES = 16
_THREAD, _NO_GROUP = "thread", "none"


@dataclass(frozen=True, slots=True)
class Given:
    """One side as it was asked for. A file has no range."""

    text: str
    start: str
    until: str
    rate: str = ""
    """Requests a second; "" when not said."""

    @property
    def is_file(self) -> bool:
        """Whether there is such a file."""
        try:
            return Path(self.text).is_file()
        except (OSError, ValueError):
            return False


@dataclass(frozen=True, slots=True)
class How:
    """In which format, and what is done to frames: for the server, and for what is compared here."""

    wanted: DiffFormat
    parameters: Mapping[str, str] = field(default_factory=dict)
    operators: Operators = NO_OPERATORS


def diff_body(left: Given, right: Given, api: Api, how: How) -> bytes:
    """Compare the sides; gives the JSON or the folded text that the format is made from. Raises BadRequest or ServerError."""
    for side in (left, right):
        if not side.is_file:
            _check_selector(side.text)
    wanted = how.wanted
    if left.is_file or right.is_file:
        group = how.parameters.get("group", _THREAD)
        if group not in (_THREAD, _NO_GROUP):
            raise BadRequest(f"stacks of a file have a thread and no {group!r}: only selectors can be grouped by it")
        return _compared_here(_read(left, api), _read(right, api), how)
    sides = {
        **how.parameters,
        "a": left.text, "a_from": left.start, "a_until": left.until,
        "b": right.text, "b_from": right.start, "b_until": right.until,
    }  # fmt: skip
    rates = {"a_rate": left.rate, "b_rate": right.rate}
    sides |= {name: rate for name, rate in rates.items() if rate}
    match wanted:
        case DiffFormat.TABLE:
            return api.get("diff/top", **sides, limit=str(ROWS_SHOWN))
        case DiffFormat.JSON:
            return api.get("diff", **sides)
        case DiffFormat.FOLDED:
            return api.get("diff", **({"group": _THREAD} | sides), format="folded")


def _check_selector(text: str) -> None:
    try:
        parse_selector(text)
    except QueryError as error:
        raise BadRequest(f"there is no file {text!r}, and it is no selector either: {error.in_lines()}") from error


def _read(side: Given, api: Api) -> FoldedSide:
    if not side.is_file:
        body = api.get("flamegraph", query=side.text, **{"from": side.start}, until=side.until, format="folded", group=_THREAD)
        return FoldedSide(side.text, import_text(body.decode("utf-8", "surrogateescape")))
    path = Path(side.text)
    with _opened(path) as file:
        if not is_pprof(file.peek(_PPROF_HEAD_BYTES)):
            return FoldedSide(side.text, FoldedLines(_lines(path)))
        body = file.read(MOST_PPROF_BYTES + 1)
    if len(body) > MOST_PPROF_BYTES:
        raise BadRequest(f"{path} is larger than {MOST_PPROF_BYTES >> 20} MiB")
    return FoldedSide(side.text, Imported(read_pprof(body)), has_threads=False)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, read as they are asked for: it may be larger than memory."""
    with _opened(path) as file:
        while line := file.readline(MOST_LINE_BYTES + 1):
            if len(line) > MOST_LINE_BYTES:
                raise BadRequest(f"{path} has a line of more than {MOST_LINE_BYTES >> 20} MiB")
            yield line.decode("utf-8", "surrogateescape")


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Read a file in here. Raises ServerError when that fails."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ServerError(f"cannot read {path}: {error.strerror}") from error


def _compared_here(a: FoldedSide, b: FoldedSide, how: How) -> bytes:
    how.operators.check()
    answer = folded_diff(a, b, how.operators)
    match how.wanted:
        case DiffFormat.TABLE:
            return json_bytes(diff_table_json(answer, DiffSort.CHANGE, ROWS_SHOWN, Search()))
        case DiffFormat.JSON:
            return json_bytes(diff_json(answer, View(DEFAULT_WIDTH_PX), Shape.B, Search()))
        case DiffFormat.FOLDED:
            lines = export_two_counts(answer.diff.a, answer.diff.b)
            return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
