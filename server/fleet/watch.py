# SPDX-License-Identifier: Apache-2.0
"""Follows the share of each service's largest functions, and makes events of what shifts without a deploy being reported on.

Two minutes at a time, a while after they ended, so that late windows are in. After a start it first goes over the last day, as fast as
a bounded share of time allows, to know again what is usual. What the watch sees is compared once more as two ranges: the highest frame
that explains a shift is told, and functions that only made room are not.
"""

import logging
import time
from collections.abc import Callable, Mapping

import numpy as np

from server.errors import ServerError
from server.fleet.deploy import Deploy
from server.fleet.deploys import deploys
from server.fleet.events import Beside, Cause, Event, event_id_of, keep_new, nothing_beside
from server.fleet.selectors import cpu_selector
from server.fleet.shares import GROUPS, Function, ServiceShares, Shifted, group_of
from server.profile.changed import NOTHING, changed_functions
from server.profile.noise import F64
from server.profile.shift import BEFORE, LAST, LEAST_SHIFT, SLOT_S
from server.query.diff_query import diff_answer
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import Selector
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import Selection

log = logging.getLogger(__name__)

MOST_SERVICES = 300
"""Followed, 0.2 MB each; those that were seen first stay."""
LEAST_SAMPLES = 120
"""In a slot, to be followed: a hundredth of a core."""
SLOT_NS = SLOT_S * SECOND_NS
_LAG_NS = 45 * SECOND_NS
"""After the end of a slot, for windows on their way."""
_BACK_NS = 24 * 3600 * SECOND_NS
_STALE_NS = 1800 * SECOND_NS
"""Older shifts, seen while going over the past, are not told any more."""
_STEP_S = 1.0
"""Work a step; the rest is done in the next."""
_DEPLOY_NS = 3600 * SECOND_NS
"""A version that came so long before a shift, or less, came with it."""


class Watch:
    """One for each server. `clock` gives seconds, for how long a step takes; `beside` is written with each event."""

    def __init__(self, query: ProfileQuery, clock: Callable[[], float] = time.monotonic, beside: Beside = nothing_beside) -> None:
        self._query = query
        self._beside = beside
        self._clock = clock
        self._services: dict[str, ServiceShares] = {}
        self._next_unix_ns = 0

    def step(self) -> list[Event]:
        """Take the slots that are due, some of them; gives events that are new."""
        now = self._query.now_unix_ns()
        if not self._next_unix_ns:
            self._next_unix_ns = self._first_slot(now)
        events: list[Event] = []
        until_s = self._clock() + _STEP_S
        while self._next_unix_ns + SLOT_NS + _LAG_NS <= now and self._clock() < until_s:
            slot = self._next_unix_ns
            samples = self._read(slot)  # What cannot be read now is read in the next step.
            self._next_unix_ns += SLOT_NS
            for service, shifted in self._shifts(samples).items():
                if now - slot <= _STALE_NS:
                    events += self._told(service, shifted, slot + SLOT_NS)
        return events

    def _first_slot(self, now_unix_ns: int) -> int:
        """Of the last day, from the first data on."""
        start = max(0, now_unix_ns - _BACK_NS)
        firsts = [info.first_unix_ns for info in self._query.store.series("cpu", start, now_unix_ns)]
        start = max(start, min(firsts, default=now_unix_ns))
        return start // SLOT_NS * SLOT_NS

    def _shifts(self, samples: Mapping[str, F64]) -> dict[str, list[Shifted]]:
        """Take one slot of all services, as `_read` gives it; those without data have a slot of nothing."""
        found: dict[str, list[Shifted]] = {}
        new = [name for name in samples if name not in self._services and samples[name].sum() >= LEAST_SAMPLES]
        for service in [*self._services, *new][:MOST_SERVICES]:
            try:
                tree = self._query.trees.tree(self._query.store.dictionary(service))
            except ServerError as error:  # The others go on.
                log.warning("not watched for a slot service=%r reason=%s", service, error)
                continue
            own = np.zeros((len(tree.tree), GROUPS))
            if service in samples:
                keys = samples[service]
                nodes = tree.nodes[self._query.store.dictionary(service).key_stacks[: keys.shape[1]]]
                for group in range(GROUPS):
                    own[:, group] = np.bincount(nodes, keys[group], len(tree.tree))
            shifted = self._services.setdefault(service, ServiceShares()).add(tree.tree, tree.first_calls, own)
            if shifted:
                found[service] = shifted
        return found

    def _read(self, slot_unix_ns: int) -> dict[str, F64]:
        """Samples by service: shape (groups, keys)."""
        store = self._query.store
        span = TimeRange(slot_unix_ns, slot_unix_ns + SLOT_NS)
        infos = store.series("cpu", span.from_unix_ns, span.until_unix_ns)
        groups = np.zeros(max((info.series_id for info in infos), default=0) + 1, np.intp)
        for info in infos:
            groups[info.series_id] = group_of(info.labels.get("host", ""))
        samples: dict[str, F64] = {}
        for piece in store.select(Selection("cpu", span.from_unix_ns, span.until_unix_ns, None, ("samples",))):
            if "samples" not in piece.columns:
                continue
            if piece.service not in samples:
                samples[piece.service] = np.zeros((GROUPS, store.dictionary(piece.service).sizes[2]))
            found = samples[piece.service]
            cells = groups[piece.series] * found.shape[1] + piece.keys
            np.add.at(found.reshape(-1), cells, piece.columns["samples"].astype(np.float64))
        return samples

    def _told(self, service: str, shifted: list[Shifted], end_unix_ns: int) -> list[Event]:
        """Make events of shifts seen at the end of a slot."""
        after = TimeRange(end_unix_ns - LAST * SLOT_NS, end_unix_ns)
        before = TimeRange(after.from_unix_ns - BEFORE * SLOT_NS, after.from_unix_ns)
        try:
            events = self._events(service, shifted, before, after)
        except ServerError as error:  # The shift is lost to the list of events; graphs and comparisons still show it.
            log.warning("event lost service=%r functions=%d reason=%s", service, len(shifted), error)
            return []
        return keep_new(self._query.store.documents, events, self._beside)

    def _events(self, service: str, shifted: list[Shifted], before: TimeRange, after: TimeRange) -> list[Event]:
        selector = cpu_selector(service=service)
        heads = self._heads(selector, shifted, before, after)
        deploy = self._deploy_before(service, after)
        events = []
        for head, explained in heads.items():
            largest = next((one for one in shifted if one.function == head), max(explained, key=lambda one: abs(one.after - one.before)))
            if abs(largest.after - largest.before) < LEAST_SHIFT:
                continue
            difference = largest.after - largest.before
            events.append(
                Event(
                    event_id=event_id_of(service, head[0], after.from_unix_ns),
                    cause=Cause.DEPLOY if deploy else Cause.NONE,
                    service=service,
                    function=head[0],
                    binary=head[1],
                    at_unix_ns=after.from_unix_ns,
                    before=largest.before,
                    after=largest.after,
                    low=difference - largest.error,
                    high=difference + largest.error,
                    explains=tuple(one.function[0] for one in explained if one.function != head),
                    deploy_id=deploy.deploy_id if deploy else "",
                    version=deploy.version if deploy else "",
                    a=(selector.text, before),
                    b=(selector.text, after),
                )
            )
        return events

    def _heads(self, selector: Selector, shifted: list[Shifted], before: TimeRange, after: TimeRange) -> dict[Function, list[Shifted]]:
        """Give the frames that explain the shifts, each with those it explains."""
        answer = diff_answer(self._query, Question(selector, before, "samples"), Question(selector, after, "samples"))
        changed = changed_functions(answer.diff, answer.first_calls())
        table = answer.diff.tree.table
        at = {(table.names[name], table.binaries[name]): i for i, name in enumerate(changed.name.tolist())}
        heads: dict[Function, list[Shifted]] = {}
        for one in shifted:
            row = at.get(one.function)
            by = NOTHING if row is None else int(changed.explained_by[row])
            head = one.function if by == NOTHING else (table.names[by], table.binaries[by])
            heads.setdefault(head, []).append(one)
        return heads

    def _deploy_before(self, service: str, after: TimeRange) -> Deploy | None:
        """The latest deploy that the shift may have come with."""
        found = deploys(self._query.store, TimeRange(after.from_unix_ns - _DEPLOY_NS, after.until_unix_ns), service)
        return found[0] if found else None
