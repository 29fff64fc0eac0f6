# SPDX-License-Identifier: Apache-2.0
"""What of a push may be stored, by its kinds and their columns, settled before anything is written.

A column that contradicts its kind is left out, and a series whose first column does, because it is the one that counts; so are kinds and
columns beyond the limits. The rest of the window stays. What a series lost moves in its account from stored to lost; the agent is flagged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from emberwatch.v1.marks_pb2 import LossReason
from server.store.known_kinds import KNOWN, in_order
from server.store.protocol import ColumnInfo
from server.store.push import DecodedPush, PushAccount, PushColumn, PushSeries

MOST_KINDS = 64
"""Beside the known ones."""
MOST_COLUMNS = 256
"""Of one kind; known ones have their place among them."""
REFUSED = "columns_refused"
"""Flag of an agent: some of its last window was left out."""
_CONTRADICTS, _TOO_MANY = LossReason.LOSS_REASON_REJECTED_MALFORMED, LossReason.LOSS_REASON_REJECTED_LIMIT


@dataclass(frozen=True, slots=True)
class Admission:
    """What is left of a push."""

    push: DecodedPush
    places: Sequence[int]
    """Index of each series in the push as it was sent."""
    kinds: Mapping[str, tuple[ColumnInfo, ...]]
    """All columns of its kinds, new ones included."""
    refused_series: int
    refused_columns: int
    """Of series that are stored."""


@dataclass(slots=True)
class _Kind:
    """A kind as it becomes while a push is looked at."""

    columns: dict[str, ColumnInfo]
    known: Mapping[str, ColumnInfo]
    names: set[str]
    """Of both."""

    def refusal(self, column: PushColumn) -> int:
        """Why a column cannot be stored; 0 when it can."""
        found = self.known.get(column.name) or self.columns.get(column.name)
        if found is not None:
            return 0 if found == ColumnInfo(column.name, column.unit, column.merge) else _CONTRADICTS
        return 0 if len(self.names) < MOST_COLUMNS else _TOO_MANY

    def take(self, column: PushColumn) -> None:
        if column.name not in self.columns:
            self.columns[column.name] = ColumnInfo(column.name, column.unit, column.merge)
            self.names.add(column.name)


@dataclass(slots=True)
class _Plan:
    have: Mapping[str, tuple[ColumnInfo, ...]]
    kinds: dict[str, _Kind] = field(default_factory=dict)
    losses: dict[str, dict[int, int]] = field(default_factory=dict)
    refused_series: int = 0
    refused_columns: int = 0

    def kind(self, name: str) -> _Kind | None:
        """None for one beyond the limit."""
        if name not in self.kinds:
            if name not in self.have and name not in KNOWN:
                others = sum(other not in KNOWN for other in {*self.have, *self.kinds})
                if others >= MOST_KINDS:
                    return None
            columns = {column.name: column for column in self.have.get(name, ())}
            known = {column.name: column for column in KNOWN.get(name, ())}
            self.kinds[name] = _Kind(columns, known, {*columns, *known})
        return self.kinds[name]

    def series(self, one: PushSeries) -> PushSeries | None:
        """What of a series is stored; None for nothing."""
        kind = self.kind(one.kind)
        reason = _TOO_MANY if kind is None else _first_refusal(kind, one.columns[0])
        if kind is None or reason:
            self._lose(one, reason)
            return None
        kept = []
        for column in one.columns:
            if kind.refusal(column):
                self.refused_columns += 1
            else:
                kind.take(column)
                kept.append(column)
        return one if len(kept) == len(one.columns) else replace(one, columns=kept)

    def _lose(self, one: PushSeries, reason: int) -> None:
        self.refused_series += 1
        values = one.columns[0].values
        losses = self.losses.setdefault(one.kind, {})
        losses[reason] = losses.get(reason, 0) + (0 if values is None else int(values.sum()))


def _first_refusal(kind: _Kind, first: PushColumn) -> int:
    """Of a kind that only agents define, the first column is the one it was first stored with."""
    if not kind.known and kind.columns and next(iter(kind.columns)) != first.name:
        return _CONTRADICTS
    return kind.refusal(first)


def admit(push: DecodedPush, have: Mapping[str, tuple[ColumnInfo, ...]]) -> Admission:
    """Look at a push; `have` are the kinds of the store."""
    plan = _Plan(have)
    kept = [(place, made) for place, one in enumerate(push.series) if (made := plan.series(one)) is not None]
    accounts = [_settled(one, plan.losses.get(one.kind, {})) for one in push.accounts if plan.kind(one.kind) is not None]
    if plan.refused_series or plan.refused_columns:
        flags = tuple(sorted({*push.host.flags, REFUSED}))
        push = replace(push, series=[made for _, made in kept], accounts=accounts, host=replace(push.host, flags=flags))
    elif len(accounts) < len(push.accounts):
        push = replace(push, accounts=accounts)
    kinds = {name: in_order(name, kind.columns.values()) for name, kind in plan.kinds.items()}
    return Admission(push, [place for place, _ in kept], kinds, plan.refused_series, plan.refused_columns)


def _settled(account: PushAccount, refused: Mapping[int, int]) -> PushAccount:
    """Move what was refused from stored to lost. An account that said less was stored than came cannot lose more."""
    stored, losses = account.stored, dict(account.losses)
    for reason, value in refused.items():
        lost = min(stored, value)
        stored -= lost
        if lost:
            losses[reason] = losses.get(reason, 0) + lost
    return replace(account, stored=stored, losses=losses)
