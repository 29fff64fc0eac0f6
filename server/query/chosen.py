# SPDX-License-Identifier: Apache-2.0
"""The series that a selector means, and parts of them by a label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    for name, (part,) in split_alike(store, [(chosen, span)], by):
        yield name, part


def split_alike(store: Store, sides: Sequence[tuple[Chosen, TimeRange]], by: By) -> Iterator[tuple[str, list[Chosen]]]:
    """Split several selections into the same groups: a value of the label with its series in each, those with the largest shares first."""
    shares: dict[str, float] = {}
    for chosen, span in sides:
        sums = _sums(store, chosen, by, span)
        whole = sum(sums.values()) or 1
        for series in chosen.series:
            name = series.labels.get(by.label, "")
            shares[name] = shares.get(name, 0.0) + sums.get(series.series_id, 0) / whole
    names = sorted(shares, key=lambda name: -shares[name])
    shown = names if len(names) <= MOST_GROUPS else names[: MOST_GROUPS - 1]
    groups = [(name or f"[no {by.label}]", [name]) for name in shown]
    rest = names[len(shown) :]
    if rest:
        groups.append((f"[{len(rest)} others]", rest))
    for title, members in groups:
        yield title, [_part(chosen, by.label, frozenset(members)) for chosen, _ in sides]


def _sums(store: Store, chosen: Chosen, by: By, span: TimeRange) -> dict[int, int]:
    """Sum of the column by series."""
    timeline = store.timeline(chosen.selection(span, (by.column,)), span.length_ns)
    values = timeline.columns[by.column].sum(axis=1).tolist() if timeline.columns else []
    return dict(zip(timeline.series_ids.tolist(), values, strict=True))


def _part(chosen: Chosen, label: str, values: frozenset[str]) -> Chosen:
    series = tuple(one for one in chosen.series if one.labels.get(label, "") in values)
    return Chosen(chosen.kind, series, is_all=False)
