# SPDX-License-Identifier: Apache-2.0
"""The series that a selector means, and parts of them by a label."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from server.query.timerange import TimeRange
from server.store.protocol import KindInfo, Selection, SeriesInfo, Store

MOST_GROUPS = 32
"""Values of a label that are told apart; the others together are one group."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The series that a selector means in a range."""

    kind: KindInfo
    series: tuple[SeriesInfo, ...]
    is_all: bool
    """The selector has no conditions: all series of the kind are meant."""

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts of the series."""
        return frozenset(series.labels.get("host", "") for series in self.series)

    def selection(self, span: TimeRange, columns: tuple[str, ...] | None = None) -> Selection:
        """Ask the store for these series."""
        ids = None if self.is_all else frozenset(series.series_id for series in self.series)
        return Selection(self.kind.name, span.from_unix_ns, span.until_unix_ns, ids, columns)


@dataclass(frozen=True, slots=True)
class By:
    """What series are grouped by, and the column whose sum tells the largest groups."""

    label: str
    column: str


def split(store: Store, chosen: Chosen, by: By, span: TimeRange) -> Iterator[tuple[str, Chosen]]:
    """Give each value of a label with its series, the largest first; beyond MOST_GROUPS all others as one."""
    timeline = store.timeline(chosen.selection(span, (by.column,)), span.length_ns)
    values = timeline.columns[by.column].sum(axis=1).tolist() if timeline.columns else []
    sums = dict(zip(timeline.series_ids.tolist(), values, strict=True))
    groups: dict[str, list[SeriesInfo]] = {}
    for series in chosen.series:
        groups.setdefault(series.labels.get(by.label, ""), []).append(series)
    sizes = np.array([sum(sums.get(series.series_id, 0) for series in members) for members in groups.values()], np.float64)
    names = [list(groups)[at] for at in np.argsort(-sizes, kind="stable").tolist()]
    shown = names if len(names) <= MOST_GROUPS else names[: MOST_GROUPS - 1]
    for name in shown:
        yield name or f"[no {by.label}]", Chosen(chosen.kind, tuple(groups[name]), is_all=False)
    rest = names[len(shown) :]
    if rest:
        yield f"[{len(rest)} others]", Chosen(chosen.kind, tuple(series for name in rest for series in groups[name]), is_all=False)
