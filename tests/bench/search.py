# SPDX-License-Identifier: Apache-2.0
"""Fleet search over 10 M distinct stacks with as many rows: in one service, which is the worst that can be, and in a hundred.

Seconds of CPU, from blocks in memory to functions and services. What the server's upkeep does as stacks arrive, the index, is a line of
its own: all of it at once, as after a restart.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from server.query.operators import frame_test
from server.query.profile_query import ProfileQuery
from server.query.search_query import Found, search_fleet
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from server.store.protocol import Piece, Selection, SeriesInfo, ServiceDictionary, Store, Timeline
from tests.bench.report import SECONDS, Line, bounded, told
from tests.bench.timing import Effort, interleaved
from tests.bench.tree_store import MINUTE_NS, PIECE_ROWS, TreeStore
from tests.server.query.fakes import FakeNamer

ROWS, NODES, HOSTS, SERVICES = 10_000_000, 40_000_000, 100, 100
NODES_A_STACK = 4
ONE, SOME, MANY = "=package::function_77", "function_77", "7"
"""Functions of 20,000: one, 111, and every third one."""


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    yield from _one_service(effort)
    yield from _many_services(effort)


def _one_service(effort: Effort) -> Iterator[Line]:
    store = TreeStore(effort.rows(NODES), max(1, effort.rows(ROWS) // PIECE_ROWS // 2), HOSTS)
    query, span = _query(store), TimeRange(store.span(0)[0], store.span(1)[1])
    stacks = f"{store.keys / 1e6:.2g} M stacks"
    yield told(f"index of {stacks} of one service, all at once", _indexed_s(query, ["service"]), SECONDS)
    taken = interleaved({text: partial(_found, query, span, text) for text in (ONE, SOME, MANY)}, effort.rounds)
    yield bounded(f"fleet search over {stacks} of one service, for one function", taken[ONE], SECONDS, 0.5)
    yield bounded("the same for 111 functions", taken[SOME], SECONDS, 0.5)
    yield told("the same for a third of all functions, in nearly all stacks", taken[MANY], SECONDS)


def _many_services(effort: Effort) -> Iterator[Line]:
    store = ManyServices(effort.rows(ROWS) // SERVICES)
    query, span = _query(store), TimeRange(*store.span(0))
    stacks = f"{store.keys * SERVICES / 1e6:.2g} M stacks of {SERVICES} services"
    yield told(f"index of {stacks}, all at once", _indexed_s(query, store.services), SECONDS)
    taken = interleaved({text: partial(_found, query, span, text) for text in (ONE, SOME)}, effort.rounds)
    yield bounded(f"fleet search over {stacks}, for one function", taken[ONE], SECONDS, 0.5)
    yield bounded("the same for 111 functions", taken[SOME], SECONDS, 0.5)


def _query(store: TreeStore) -> ProfileQuery:
    return ProfileQuery(cast(Store, store), FakeNamer(), lambda: store.span(1)[1])


def _indexed_s(query: ProfileQuery, services: list[str]) -> float:
    began_s = time.process_time()
    query.stacks.tend(query.store.dictionary(service) for service in services)
    return time.process_time() - began_s


def _found(query: ProfileQuery, span: TimeRange, text: str) -> Found:
    return search_fleet(query, parse_selector("cpu{}"), span, frame_test(text))


class ManyServices(TreeStore):
    """One minute of services with the same functions, and stacks of their own."""

    def __init__(self, stacks: int) -> None:
        """`stacks` is about how many each has."""
        super().__init__(NODES_A_STACK * stacks, 1, HOSTS)
        self.services = [f"service-{number:02}" for number in range(SERVICES)]

    def select(self, selection: Selection) -> Iterator[Piece]:
        """A block of each service."""
        for number, service in enumerate(self.services, 1):
            for piece in super().select(selection):
                yield replace(piece, service=service, series=number)

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        """One slot."""
        one = super().timeline(selection, step_ns)
        columns = {name: np.repeat(sums, SERVICES, axis=0) for name, sums in one.columns.items()}
        return replace(one, series_ids=np.arange(1, SERVICES + 1), columns=columns, has_data=np.repeat(one.has_data, SERVICES, axis=0))

    def series(self, _kind: str, _from: int, _until: int) -> list[SeriesInfo]:
        """One a service."""
        labels = [{"service": service, "host": "host"} for service in self.services]
        return [SeriesInfo(n, one["service"], "cpu", one, MINUTE_NS, 3 * MINUTE_NS) for n, one in enumerate(labels, 1)]

    def dictionary(self, service: str) -> ServiceDictionary:
        """The same stacks under another name: each service has an index of its own."""
        return replace(super().dictionary(service), service=service)
