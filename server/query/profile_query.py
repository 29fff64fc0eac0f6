# SPDX-License-Identifier: Apache-2.0
"""From a question to a tree with values on it: store -> merge -> names -> call tree (hop 9 of the path in README)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from server.errors import Overloaded
from server.profile.join import Branch, join
from server.profile.top import first_calls
from server.profile.totals import Mask, WeighedTree, weigh
from server.query.branches import Laid, Stacks, branches_of, separator
from server.query.chosen import By, Chosen, split
from server.query.complaint import QueryError, did_you_mean
from server.query.frame_names import Namer
from server.query.idle import NEEDED, Idle, IdleShare, add_idle, can_be_idle, part
from server.query.kinds import kinds_to_ask, width_column
from server.query.looked_at import look_at
from server.query.merge import KeyWeights, Meter, key_weights
from server.query.name_index import NameIndex
from server.query.operators import NO_OPERATORS, Operators
from server.query.quality import Quality, add_accounts, is_silent, stack_shares
from server.query.row_filter import keep_of
from server.query.selector import ROW_LABELS, Selector, check_names
from server.query.stack_indexes import StackIndexes
from server.query.stack_losses import Counts, counts_of, stack_losses
from server.query.timerange import SECOND_NS, TimeRange
from server.query.trees import TreeCache
from server.store.protocol import ColumnInfo, SeriesInfo, Store

FIXED_LABELS = ("service", "version", "host")
MOST_AT_ONCE = 4
"""Questions answered at the same time; more wait."""
LONGEST_WAIT_S = 20.0
_END_OF_TIME_NS = 2**62
_DAY_NS = 86_400 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `column` "" is the kind's own."""

    selector: Selector
    range: TimeRange
    column: str = ""
    group: str = ""
    """What stands as a level of its own above the frames: a label of rows or of series; "" for nothing."""
    operators: Operators = NO_OPERATORS
    is_counted: bool = False
    """Without a column, take the kind's first one, which counts, and not its time."""

    requests_per_s: float = 0.0
    """What the service did meanwhile: values of a comparison are said per request then."""
    idle: Idle = Idle.SHOW
    stacks: Stacks = Stacks.FIRST

    @property
    def row_group(self) -> str:
        """The label of rows that is the outermost level; "" when there is none."""
        return self.group if self.group in ROW_LABELS else ""

    @property
    def series_group(self) -> str:
        """The label of series that is the outermost level; "" when there is none."""
        return "" if self.group in ROW_LABELS else self.group


def check_group(question: Question, series: Iterable[SeriesInfo]) -> None:
    """Raise QueryError when no series has the label that the question is grouped by."""
    labels = {label for one in series for label in one.labels}.union(FIXED_LABELS)
    if question.series_group not in labels:
        name = question.group[:64]
        raise QueryError(f"no series here has a label {name!r}", hint=did_you_mean(name, {*ROW_LABELS, *labels}))


@dataclass(frozen=True, slots=True)
class Profile:
    """An answer, whole: nothing is cut yet."""

    kind: str
    column: ColumnInfo
    range: TimeRange
    weighed: WeighedTree
    whole: int
    """Value before operators left stacks out."""
    first_calls: Callable[[], Mask]
    """See server.profile.top."""
    samples: int
    """Sum of the kind's first column."""
    covered_s: float
    """From the start of the first window to the end of the last one in the range."""
    quality: Quality
    idle: IdleShare | None
    """Of kinds whose rows can wait for work."""
    nearest_data_s: float | None
    """When there is nothing: the nearest moment with data of the selector, None when there is none at all."""


@dataclass(frozen=True, slots=True)
class _Merged:
    """What was added up, laid on a tree."""

    weighed: WeighedTree
    samples: int
    """Of the kind's first column, after operators."""
    first_calls: Callable[[], Mask] | None
    """None where the tree is not a service's own, kept one."""
    idle: IdleShare | None
    start_unix_ns: int
    end_unix_ns: int
    rows: int
    naming: frozenset[int]
    """Row ids of binaries in it whose names are being made."""
    counts: Sequence[Counts]
    """What was added up, in the kind's first column, before operators."""


class ProfileQuery:
    """Answers questions. Thread safe."""

    def __init__(self, store: Store, namer: Namer, now_unix_ns: Callable[[], int]) -> None:
        self.store = store
        self.now_unix_ns = now_unix_ns
        self.trees = TreeCache(namer, store.binaries)
        self.stacks = StackIndexes(namer, store.binaries)
        self._namer = namer
        self.names = NameIndex()
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)

    def choose(self, selector: Selector, span: TimeRange) -> Chosen:
        """Find the series of a selector. Raises QueryError for a kind or label that was never stored."""
        kinds = kinds_to_ask(self.store.kinds())
        check_names(selector, kinds, ())
        strange = [matcher for matcher in selector.of_series if matcher.label not in FIXED_LABELS]
        if strange:
            ever = self.store.series(selector.kind, 0, _END_OF_TIME_NS)
            check_names(selector, kinds, {*FIXED_LABELS, *ROW_LABELS, *(label for series in ever for label in series.labels)})
        matches = selector.test()
        series = self.store.series(selector.kind, span.from_unix_ns, span.until_unix_ns)
        return Chosen(kinds[selector.kind], tuple(s for s in series if matches(s.labels)), not selector.of_series)

    def profile(self, question: Question) -> Profile:
        """Answer a question. Raises QueryError, LimitExceeded or Overloaded."""
        with self.place():
            question.operators.check()
            chosen = self.choose(question.selector, question.range)
            column = width_column(chosen.kind, question.column or (chosen.kind.columns[0].name if question.is_counted else ""))
            merged = self._merged(chosen, question, column)
            weighed, first = merged.weighed, merged.first_calls
            shown = weighed
            if not question.operators.is_nothing:
                shown, first = _reshaped(weighed, question.operators), None
            return Profile(
                kind=chosen.kind.name,
                column=column,
                range=question.range,
                weighed=shown,
                whole=weighed.sum,
                first_calls=first or (lambda: first_calls(shown.tree)),
                samples=merged.samples,
                covered_s=(merged.end_unix_ns - merged.start_unix_ns) / SECOND_NS,
                quality=replace(
                    self.quality(chosen, question, weighed, has_rows=merged.rows > 0),
                    stack_losses=stack_losses(merged.counts),
                    naming=len(merged.naming),
                ),
                idle=merged.idle,
                nearest_data_s=None if weighed.sum else self._nearest_data_s(question),
            )

    @contextmanager
    def place(self) -> Iterator[None]:
        """Answer a question in here. Raises Overloaded when too many others are being answered."""
        if not self._places.acquire(timeout=LONGEST_WAIT_S):
            raise Overloaded(f"{MOST_AT_ONCE} questions are being answered and none has ended for {LONGEST_WAIT_S:.0f} s; try again")
        try:
            yield
        finally:
            self._places.release()

    def _merged(self, chosen: Chosen, question: Question, column: ColumnInfo) -> _Merged:
        """Add up and lay on a tree; a label of series that the question is grouped by is its outermost level."""
        if not question.series_group:
            return self._one(chosen, question, column, Meter())
        check_group(question, chosen.series)
        groups = split(self.store, chosen, By(question.group, column.name), question.range)
        meter = Meter()
        return _joined([(value, self._one(some, question, column, meter)) for value, some in groups])

    def _one(self, chosen: Chosen, question: Question, column: ColumnInfo, meter: Meter) -> _Merged:
        weights, idle = self._weights(chosen, question, column, meter)
        count = chosen.kind.columns[0].name
        weighed, first = self._tree(weights, column.name, question)
        samples = sum(service.totals[count] for service in weights.services.values())
        if question.operators.leave_stacks_out:  # How many there are of the others is known from a tree of the counts alone.
            samples = _reshaped(self._tree(weights, count, question)[0], question.operators).sum
        naming = look_at(weights, column.name, self._namer, self.store)
        counts = [counts_of(one.dictionary, one.columns[count]) for one in weights.services.values()]
        return _Merged(weighed, samples, first, idle, weights.start_unix_ns, weights.end_unix_ns, weights.rows, naming, counts)

    def _weights(self, chosen: Chosen, question: Question, column: ColumnInfo, meter: Meter) -> tuple[KeyWeights, IdleShare | None]:
        has_idle = can_be_idle(chosen.kind)
        columns = tuple(dict.fromkeys((column.name, chosen.kind.columns[0].name, *(NEEDED if has_idle else ()))))
        weights = key_weights(self.store, chosen.selection(question.range, columns), columns, meter, keep_of(question.selector))
        return part(weights, question.idle, column.name, len(chosen.hosts)) if has_idle else (weights, None)

    def _tree(self, weights: KeyWeights, column: str, question: Question) -> tuple[WeighedTree, Callable[[], Mask] | None]:
        """Give the tree, and what knows its first calls when it is a service's own, kept tree."""
        if len(weights.services) == 1 and not question.row_group and question.stacks is Stacks.FIRST:
            (service,) = weights.services.values()
            tree = self.trees.tree(service.dictionary, is_by_line=question.operators.is_by_line)
            values = service.columns[column]
            return weigh(tree.tree, tree.nodes[service.dictionary.key_stacks], values), lambda: tree.first_calls
        laid = Laid(column, question.stacks, separator(question.selector.kind))
        branches = [
            branch
            for service in weights.services.values()
            for branch in branches_of(
                self.trees.tree(service.dictionary, is_by_line=question.operators.is_by_line), service, laid, question.row_group
            )
        ]
        return join(branches), None

    def quality(self, chosen: Chosen, question: Question, weighed: WeighedTree, has_rows: bool) -> Quality:
        """Tell how far an answer can be trusted."""
        span, now = question.range, self.now_unix_ns()
        hosts = chosen.hosts
        accounts = self.store.accounts(chosen.kind.name, span.from_unix_ns, span.until_unix_ns)
        lately = TimeRange(max(0, span.from_unix_ns - _DAY_NS), span.until_unix_ns)
        matches = question.selector.test()
        expected = {
            series.labels.get("host", "")
            for series in self.store.series(chosen.kind.name, lately.from_unix_ns, lately.until_unix_ns)
            if matches(series.labels)
        }
        at = min(now, span.until_unix_ns)
        silent = sorted({agent.host for agent in self.store.agents() if agent.host in expected and is_silent(agent, at)})
        losses = add_accounts(accounts, None if chosen.is_all else hosts)
        heard = len(hosts.difference(silent)) if has_rows else 0
        return Quality(losses, not chosen.is_all, stack_shares(weighed), heard, tuple(silent))

    def _nearest_data_s(self, question: Question) -> float | None:
        matches = question.selector.test()
        span = question.range
        moments = [
            moment
            for series in self.store.series(question.selector.kind, 0, _END_OF_TIME_NS)
            if matches(series.labels)
            for moment in (series.first_unix_ns, series.last_unix_ns)
        ]
        if not moments:
            return None
        return min(moments, key=lambda m: max(span.from_unix_ns - m, m - span.until_unix_ns)) / SECOND_NS


def _reshaped(weighed: WeighedTree, operators: Operators) -> WeighedTree:
    return operators.apply(weighed.tree, weighed.own > 0).weighed(weighed.own)


def _joined(parts: list[tuple[str, _Merged]]) -> _Merged:
    """Hang each part under its label."""
    found = [one for _, one in parts if one.rows]
    idle = [one.idle for one in found if one.idle is not None]
    return _Merged(
        weighed=join([Branch(one.weighed, label) for label, one in parts if one.rows]),
        samples=sum(one.samples for one in found),
        first_calls=None,
        idle=add_idle(idle) if idle else None,
        start_unix_ns=min((one.start_unix_ns for one in found), default=0),
        end_unix_ns=max((one.end_unix_ns for one in found), default=0),
        rows=sum(one.rows for one in found),
        naming=frozenset().union(*(one.naming for one in found)),
        counts=[part for one in found for part in one.counts],
    )
