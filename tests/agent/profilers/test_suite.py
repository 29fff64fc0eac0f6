# SPDX-License-Identifier: Apache-2.0
"""A group of programs that fails while it runs takes nothing down but itself."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import pytest

from agent.errors import KernelError
from agent.profilers.cpu import CpuProfiler
from agent.profilers.event_host import ClosedWindow, EventProfiler
from agent.profilers.registry import GROUPS
from agent.profilers.suite import Suite
from agent.records.drain import CpuDrain
from agent.records.event_drain import EventAccount, EventDrain, event_keys
from agent.records.limit import Limit
from tests.support.drains import DrainOf


class FakeCpu:
    buffer = 0

    def drain(self) -> CpuDrain:
        return DrainOf().drain()

    def tick(self) -> float | None:
        return 7.0

    def map_bytes(self) -> int:
        return 0


class FakeGroup:
    """Answers until `failing` names what it cannot do any more."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.failing = ""
        self.closed = 0

    def before_drain(self) -> None:
        self._fail("before_drain")

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        self._fail("drain")
        return (EventDrain(self.kind, window.start_ns, window.end_ns, event_keys(0), (), EventAccount(0, 0, {})),)

    def tick(self) -> float | None:
        self._fail("tick")
        return 23.0

    def limit(self) -> Limit:
        return Limit()

    def map_bytes(self) -> int:
        return 0

    def close(self) -> None:
        self.closed += 1

    def _fail(self, what: str) -> None:
        if self.failing == what:
            raise KernelError(f"{what} of {self.kind}")


@pytest.mark.parametrize("what", ["before_drain", "drain", "tick"])
def test_a_group_that_fails_is_off_and_says_why(what: str) -> None:
    broken, whole = FakeGroup("tcp"), FakeGroup("lock")
    with ExitStack() as closing:
        suite = Suite(cast(CpuProfiler, FakeCpu()), closing)
        for group in (broken, whole):
            suite.add(replace(GROUPS[0], kinds=(group.kind,)), cast(EventProfiler, group))
        assert [drain.kind for drain in suite.drain().events] == ["tcp", "lock"]
        broken.failing = what
        assert suite.tick() == 7.0
        suite.drain()
        assert [drain.kind for drain in suite.drain().events] == ["lock"]
        assert suite.kinds == ("cpu", "lock")
        assert suite.refusals == {"tcp": f"{what} of tcp"}
        assert (broken.closed, whole.closed) == (1, 0)
    assert (broken.closed, whole.closed) == (1, 1)
