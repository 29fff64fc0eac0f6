# SPDX-License-Identifier: Apache-2.0
"""The watch on a store: one event for a function that grew, in time, with what it explains; the past is gone over and not told again."""

from typing import NoReturn

import numpy as np
import pytest

from server.errors import Overloaded
from server.fleet.events import Cause, kept_events
from server.fleet.watch import SLOT_NS, Watch
from server.query.profile_query import ProfileQuery
from server.store.protocol import Selection
from tests.server.query.fakes import SECOND_NS, START_NS, FakeNamer, FakeStore, Row

MINUTE_NS = 60 * SECOND_NS
HOSTS = [f"web-{at}" for at in range(5)]
STACKS = {("main",): 500, ("main", "render"): 6000, ("main", "parse", "scan"): 1000, ("main", "parse"): 200, ("main", "zip"): 2000}
SLOTS = 300
"""Ten hours: the longer the past, the better it is known what is usual."""


class Service:
    """Five hosts, one window every two minutes."""

    def __init__(self) -> None:
        self.store = FakeStore()
        self.now_ns = START_NS // SLOT_NS * SLOT_NS
        self.query = ProfileQuery(self.store, FakeNamer(), lambda: self.now_ns)
        self._random = np.random.default_rng(3)

    def run(self, slots: int, more: int = 0, version: str = "1") -> None:
        """Let slots pass; `more` samples a window are in scan."""
        for _ in range(slots):
            for host in HOSTS:
                rows: list[Row] = []
                for stack, mean in STACKS.items():
                    due = mean + (more if stack[-1] == "scan" else 0)
                    rows.append(("shop", host, "t", list(stack), int(self._random.normal(due, due * 0.03))))
                self.store.add(rows, self.now_ns + MINUTE_NS, version)
            self.now_ns += SLOT_NS


def caught_up(watch: Watch) -> Watch:
    watch.step()
    return watch


def test_a_function_that_grows_is_one_event_within_15_minutes() -> None:
    service = Service()
    watch = Watch(service.query, lambda: 0.0)
    service.run(SLOTS)
    assert caught_up(watch).step() == []
    planted_ns, told = service.now_ns, []
    for _ in range(20):
        service.run(1, more=120)  # of 9,700: 1.2 points
        events = watch.step()
        told += [(service.now_ns - planted_ns, event) for event in events]
    ((after_ns, event),) = told
    assert after_ns <= 15 * MINUTE_NS
    assert (event.cause, event.service, event.function, event.deploy_id) == (Cause.NONE, "shop", event.function, "")
    assert {event.function, *event.explains} >= {"scan"}
    assert 0 < event.low < event.after - event.before < event.high
    assert abs(event.at_unix_ns - planted_ns) <= 12 * MINUTE_NS
    assert "of shop (+" in event.words
    assert kept_events(service.store.documents, 0) == [event]


def test_what_it_does_over_and_over_is_no_event() -> None:
    service = Service()
    watch = Watch(service.query, lambda: 0.0)
    service.run(SLOTS)
    watch.step()
    for _ in range(60):
        service.run(1)
        assert watch.step() == []


def test_the_past_is_gone_over_and_not_told() -> None:
    service = Service()
    service.run(SLOTS)
    service.run(60, more=200)
    assert Watch(service.query, lambda: 0.0).step() == []


def test_a_version_that_came_before_is_named() -> None:
    service = Service()
    watch = Watch(service.query, lambda: 0.0)
    service.run(SLOTS)
    watch.step()
    told = []
    for _ in range(12):
        service.run(1, more=200, version="2")
        told += watch.step()
    (event,) = told
    assert (event.cause, event.version) == (Cause.DEPLOY, "2") and event.deploy_id


def test_a_step_does_bounded_work() -> None:
    service = Service()
    service.run(20)
    ticks = iter(range(1000))
    watch = Watch(service.query, lambda: float(next(ticks)))
    for _ in range(19):
        watch.step()
    assert watch._next_unix_ns <= service.now_ns


def test_a_slot_that_cannot_be_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    watch = Watch(service.query, lambda: 0.0)
    service.run(SLOTS)
    caught_up(watch)
    told = []
    for slot in range(20):
        service.run(1, more=120)
        with monkeypatch.context() as patch:
            if slot % 3:  # Two of three steps find the store busy.
                patch.setattr(service.store, "select", busy)
                with pytest.raises(Overloaded):
                    watch.step()
                continue
        told += watch.step()
    assert len(told) == 1 and {told[0].function, *told[0].explains} >= {"scan"}


def busy(_: Selection) -> NoReturn:
    raise Overloaded("waited 10 s")
