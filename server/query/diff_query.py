# SPDX-License-Identifier: Apache-2.0
"""From two questions to a diff: both sides laid on one tree of names (server.query.sides) and compared (server.profile.diff)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from server.profile.diff import Diff, Side, compare
from server.profile.top import first_calls
from server.profile.totals import Mask
from server.query.complaint import QueryError
from server.query.idle import busy_keys
from server.query.kinds import width_column
from server.query.path_marks import Bits
from server.query.profile_query import ProfileQuery, Question
from server.query.quality import Quality, StackLosses, share
from server.query.replicates import ReplicatedWeights, Wanted
from server.query.row_filter import keep_of
from server.query.sides import ReadSide, laid, read_sides, reshaped_sides
from server.query.stack_losses import Counts, stack_losses
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import ColumnInfo

ENOUGH_HOSTS = 6
"""Of so many, hosts tell by themselves how much hosts differ."""

WINDOW_NS = 10 * SECOND_NS
LEAST_UNNAMED = 0.005
"""Share of a side without names that is worth a word."""


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """What is known of one side."""

    text: str
    """The selector, or the name of a file."""
    range: TimeRange | None
    """None of a file."""
    covered_s: float
    samples: int
    hosts: int
    replicates: int
    """Those with a value."""
    quality: Quality | None
    """None of a file."""
    requests_per_s: float = 0.0
    """As it was said; 0 when it was not."""

    @property
    def per(self) -> tuple[str, float] | None:
        """What values are said per, and how many of it the side has: requests when their rate is known, else seconds; None of a file."""
        if not self.covered_s:
            return None
        return ("request", self.covered_s * self.requests_per_s) if self.requests_per_s else ("second", self.covered_s)


@dataclass(frozen=True, slots=True)
class DiffAnswer:
    """An answer, whole: nothing is cut yet."""

    kind: str
    column: ColumnInfo
    a: SideAnswer
    b: SideAnswer
    diff: Diff
    first_calls: Callable[[], Mask]
    """See server.profile.top."""
    notes: tuple[str, ...]


def together(query: ProfileQuery, a: Question, b: Question) -> tuple[Question, Question]:
    """Narrow both to the time in which both sides ran: a canary beside the others, in the same minutes. Raises QueryError without any."""
    found = [_ran(query, side) for side in (a, b)]
    start, end = max(first for first, _ in found), min(last for _, last in found)
    if start >= end:
        raise QueryError("the sides never ran at the same time in their ranges", hint="compare before and after, or take a longer range")
    both = TimeRange(start, end)
    return replace(a, range=both), replace(b, range=both)


def _ran(query: ProfileQuery, side: Question) -> tuple[int, int]:
    """First and last moment with data; the last is known to a minute. The empty range of nothing."""
    series = query.choose(side.selector, side.range).series
    first = min((one.first_unix_ns for one in series), default=side.range.until_unix_ns)
    last = max((one.last_unix_ns + WINDOW_NS for one in series), default=side.range.from_unix_ns)
    return max(first, side.range.from_unix_ns), min(last, side.range.until_unix_ns)


def diff_answer(query: ProfileQuery, a: Question, b: Question) -> DiffAnswer:
    """Compare the answers to two questions of one kind and column. Raises QueryError, LimitExceeded or Overloaded."""
    a.operators.check()
    if a.selector.kind != b.selector.kind:
        raise QueryError(f"side A is of kind {a.selector.kind} and side B of kind {b.selector.kind}: only one kind can be compared")
    with query.place():
        chosen = query.choose(a.selector, a.range), query.choose(b.selector, b.range)
        kind = chosen[0].kind
        first = kind.columns[0].name
        column = width_column(kind, a.column or (first if a.is_counted else ""))
        observed = next((c.name for c in kind.columns if c.name == "observed"), first)
        wanted = [Wanted(column.name, first, observed, busy_keys(keep_of(side.selector), side.idle)) for side in (a, b)]
        sides = read_sides(query, list(zip((a, b), chosen, strict=True)), wanted)
        tree, (side_a, side_b), first_of = laid(query, sides, a)
        if not a.operators.is_nothing:
            tree, side_a, side_b = reshaped_sides(tree, a.operators, side_a, side_b)
            first_of = None
        diff = compare(tree, side_a, side_b)
        marked: dict[int, Bits] = {}
        losses = [_stack_losses(read, marked) for read in sides]
        answers = [_answer(query, *one, diff) for one in zip(sides, losses, (side_a, side_b), strict=True)]
        return DiffAnswer(
            kind=kind.name,
            column=column,
            a=answers[0],
            b=answers[1],
            diff=diff,
            first_calls=first_of or (lambda: first_calls(diff.tree)),
            notes=(*notes_of(diff, answers), *_host_notes(sides), *_build_notes(sides, answers)),
        )


def notes_of(diff: Diff, answers: list[SideAnswer]) -> tuple[str, ...]:
    """Say what limits the comparison of any two sides."""
    notes = [f"side {name} is empty" for name, sum_ in (("A", diff.a.sum), ("B", diff.b.sum)) if not sum_]
    if notes:
        return (*notes, "nothing can be compared: no change is marked")
    single = [name for name, answer in zip("AB", answers, strict=True) if answer.replicates < 2]
    if not single:
        return ()
    which = "both sides are" if len(single) == 2 else f"side {single[0]} is"
    return (f"{which} one piece: that noise is of counting samples alone, which is the least it can be",)


def _host_notes(sides: list[ReadSide]) -> Iterator[str]:
    a, b = (read.hosts for read in sides)
    if a and b and sides[0].chosen.hosts != sides[1].chosen.hosts and min(len(a), len(b)) < ENOUGH_HOSTS:
        yield f"the sides have different hosts, and one fewer than {ENOUGH_HOSTS}: what these hosts differ by anyway counts as change"


def _build_notes(sides: list[ReadSide], answers: list[SideAnswer]) -> Iterator[str]:
    """Places in a file mean nothing in another build of it."""
    versions = [{series.labels.get("version", "") for series in read.chosen.series} for read in sides]
    unnamed = [answer.quality.stacks.unnamed for answer in answers if answer.quality]
    if all(versions) and versions[0] != versions[1] and max(unnamed, default=0.0) >= LEAST_UNNAMED:
        a, b = (f"{part * 100:.1f} %" for part in unnamed)
        yield f"{a} of side A and {b} of side B end in frames without names: other places in another build, so not compared"


def _answer(query: ProfileQuery, read: ReadSide, losses: StackLosses, side: Side, diff: Diff) -> SideAnswer:
    weighed = diff.a if side is diff.side_a else diff.b
    quality = query.quality(read.chosen, read.question, weighed, has_rows=read.rows > 0)
    return SideAnswer(
        text=read.question.selector.text,
        range=read.question.range,
        covered_s=read.covered_ns / SECOND_NS,
        samples=read.samples,
        hosts=len(read.hosts),
        replicates=side.used,
        quality=replace(quality, stack_losses=losses),
        requests_per_s=read.question.requests_per_s,
    )


def _stack_losses(read: ReadSide, marked: dict[int, Bits]) -> StackLosses:
    """A side is added up by its width column alone: samples are taken to be spread over stacks as that is."""
    services = [_summed(one) for _, part in read.parts for one in part.services.values()]
    found = stack_losses(services, marked)
    total = sum(float(one.values.sum()) for one in services)
    return replace(found, by={reason: round(share(value, total) * read.samples) for reason, value in found.by.items()})


def _summed(weights: ReplicatedWeights) -> Counts:
    values = weights.values.sum(axis=0).astype(np.float64)
    keys = np.flatnonzero(values)
    return Counts(weights.dictionary, keys if weights.keys is None else weights.keys[keys], values[keys])
