# SPDX-License-Identifier: Apache-2.0
"""Tables are made in the order in which they are waited for."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.identity import BinaryKey
from server.symbols.work_queue import HUGE_BYTES, WorkQueue

WAIT_S = 300.0


def key(name: str) -> BinaryKey:
    return BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, name.encode(), b"")


class Made:
    """A queue, what it made in which order, and work that lasts until it is let go."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.queue = WorkQueue(workers, "test")
        self.order: list[str] = []
        self.gates: list[threading.Event] = []

    def add(self, name: str, size_bytes: int = 1000) -> None:
        self.queue.add(key(name), size_bytes, lambda: self.order.append(name))

    def hold(self, name: str, size_bytes: int = 1000) -> Callable[[], None]:
        """Add work that has begun when this returns; what is returned lets it end."""
        has_begun, may_end = threading.Event(), threading.Event()
        self.gates.append(may_end)

        def work() -> None:
            has_begun.set()
            may_end.wait(WAIT_S)
            self.order.append(name)

        self.queue.add(key(name), size_bytes, work)
        assert has_begun.wait(WAIT_S)
        return may_end.set


@pytest.fixture(params=[1, 2])
def made(request: pytest.FixtureRequest) -> Iterator[Made]:
    made = Made(request.param)
    yield made
    for gate in made.gates:
        gate.set()
    made.queue.close()


def test_what_is_looked_at_comes_first_by_weight_and_small_before_huge() -> None:
    made = Made(1)
    end = made.hold("first")
    made.add("huge", HUGE_BYTES + 1)
    for name in ("kernel", "libc", "app", "plugin"):
        made.add(name)
    waiting = made.queue.look_at({key("plugin"): 7.0, key("app"): 23.0, key("elsewhere"): 99.0, key("first"): 1.0})
    assert waiting == {key("plugin"), key("app"), key("first")}
    assert len(made.queue) == 6
    end()
    assert made.queue.wait_idle(WAIT_S)
    assert made.order == ["first", "app", "plugin", "kernel", "libc", "huge"]
    assert len(made.queue) == 0
    made.queue.close()


def test_a_huge_file_that_is_looked_at_waits_for_no_small_one() -> None:
    made = Made(1)
    end = made.hold("first")
    made.add("libc")
    made.add("huge", HUGE_BYTES + 1)
    made.queue.look_at({key("huge"): 0.0})
    end()
    assert made.queue.wait_idle(WAIT_S)
    assert made.order == ["first", "huge", "libc"]
    made.queue.close()


def test_huge_files_leave_a_worker_to_the_others() -> None:
    made = Made(2)
    end = made.hold("huge", HUGE_BYTES + 1)
    for name in ("second huge", "third huge"):
        made.add(name, HUGE_BYTES + 1)
    end_small = made.hold("kernel")
    made.add("libc")
    end_small()
    end()
    assert made.queue.wait_idle(WAIT_S)
    assert sorted(made.order) == ["huge", "kernel", "libc", "second huge", "third huge"]
    assert made.order.index("second huge") < made.order.index("third huge")
    made.queue.close()


def test_work_that_fails_does_not_stop_the_queue(made: Made) -> None:
    def broken() -> None:
        raise ValueError("broken")

    made.queue.add(key("broken"), 1, broken)
    made.add("libc")
    assert made.queue.wait_idle(WAIT_S)
    assert made.order == ["libc"]


def test_what_waits_is_forgotten_at_the_end(made: Made) -> None:
    names = ["one", "two"][: made.workers]
    ends = [made.hold(name) for name in names]
    made.add("waiting")
    assert len(made.queue) == made.workers + 1
    closing = threading.Thread(target=made.queue.close)
    closing.start()
    deadline_s = time.monotonic() + WAIT_S
    while len(made.queue) > made.workers and time.monotonic() < deadline_s:  # Until close() has forgotten what waits.
        time.sleep(0.001)
    made.add("late")
    for end in ends:
        end()
    closing.join(WAIT_S)
    assert not closing.is_alive()
    assert sorted(made.order) == names


def test_a_table_that_waits_to_be_made_anew_is_not_queued_twice(made: Made) -> None:
    """All that has come by then is read when it is made."""
    ends = [made.hold(name) for name in ("one", "two")[: made.workers]]
    remade: list[str] = []
    for name in ("app", "libc", "app", "app", "libc"):
        made.queue.add(key(name), 1, partial(remade.append, name), is_remake=True)
    made.add("app")  # Other work on the same binary, which must be done.
    assert len(made.queue) == made.workers + 3
    for end in ends:
        end()
    assert made.queue.wait_idle(WAIT_S)
    assert sorted(remade) == ["app", "libc"]
    assert "app" in made.order


def test_what_comes_while_a_table_is_made_anew_makes_it_once_more(made: Made) -> None:
    remade: list[int] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def first() -> None:
        has_begun.set()
        may_end.wait(WAIT_S)
        remade.append(1)

    made.gates.append(may_end)
    made.queue.add(key("app"), 1, first, is_remake=True)
    assert has_begun.wait(WAIT_S)
    made.queue.add(key("app"), 1, lambda: remade.append(2), is_remake=True)
    may_end.set()
    assert made.queue.wait_idle(WAIT_S)
    assert sorted(remade) == [1, 2]
