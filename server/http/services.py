# SPDX-License-Identifier: Apache-2.0
"""What the routes need of the rest of the server; the application hands it in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable

from server.query.profile_query import ProfileQuery
from server.symbols.desk import SymbolDesk


def _page_files() -> Traversable:
    return resources.files("server.web")


@dataclass(frozen=True, slots=True)
class AppServices:
    """All of it."""

    query: ProfileQuery
    symbols: SymbolDesk | None = None
    """None leaves the routes of symbols out."""
    health: Callable[[], str] = lambda: "ok"
    """"ok", or what is wrong in words."""
    failing: Callable[[], Mapping[str, str]] = field(default=dict)
    """Tasks in the background that failed the last time, and why; questions are answered all the same."""
    counters: Callable[[], Mapping[str, float]] = field(default=dict)
    """Figures of other parts for /metrics, by name after "emberwatch_"; a name that ends in _total is a counter."""
    kind_totals: Callable[[], Mapping[tuple[str, str], Mapping[str, int]]] = field(default=dict)
    """By kind and column: totals by service since the start, for /metrics; few of each."""
    page_files: Traversable = field(default_factory=_page_files)
