# SPDX-License-Identifier: Apache-2.0
"""From the spool to a server that behaves, and to one that does not."""

import threading
from collections import Counter
from pathlib import Path

import pytest

from agent.collect.encode import Numbering, parcels_from_batch
from agent.errors import PushDelayed, PushRejected
from agent.records.window import WindowTime
from agent.ship.sender import Sender, Step
from agent.ship.spool import Spool
from emberwatch.v1 import collector_pb2
from emberwatch.v1 import marks_pb2 as marks
from tests.support.batches import AGENT_ID, EPOCH_UNIX_NS, START_UNIX_NS, WINDOW_NS, Row, batch_of
from tests.support.drains import rows_of_batch
from tests.support.fake_collector import FakeCollector

ROWS: list[Row] = [
    ("web", "main", ["app+0x10", "app+0x20", "app+0x30"], 7),
    ("web", "main", ["app+0x11", "app+0x20", "app+0x30"], 23),
    ("web", "worker-N", ["_text+0x5", "jit:go", "app+0x30"], 3),
    ("db", "main", ["app+0x10", "app+0x20", "app+0x30"], 5),
    ("db", "main", ["[no stack]"], 11),
]
STORED, UNKNOWN, DUPLICATE = (
    collector_pb2.PUSH_STATUS_STORED,
    collector_pb2.PUSH_STATUS_UNKNOWN_KEYS,
    collector_pb2.PUSH_STATUS_DUPLICATE,
)


class Ship:
    """A spool, a sender and a fake server, with windows put in by their rows."""

    def __init__(self, directory: Path) -> None:
        self.server = FakeCollector()
        self.spool = Spool(directory, lambda: START_UNIX_NS / 1e9)
        self.sender = Sender(self.spool, self.server.push, AGENT_ID)
        self.expected: Counter[tuple[bytes, bytes, tuple[str, ...]]] = Counter()
        self._sequence = 0

    def put(self, rows: list[Row]) -> None:
        self._sequence += 1
        batch = batch_of(rows)
        self.expected.update(rows_of_batch(batch))
        time = WindowTime(START_UNIX_NS + self._sequence * WINDOW_NS, START_UNIX_NS + (self._sequence + 1) * WINDOW_NS)
        for parcel in parcels_from_batch(batch, time, Numbering(EPOCH_UNIX_NS, self._sequence)):
            self.spool.append(parcel)

    def drain(self) -> list[Step]:
        steps: list[Step] = []
        while (step := self.sender.step()) is not Step.EMPTY:
            steps.append(step)
        return steps


@pytest.fixture
def ship(tmp_path: Path) -> Ship:
    return Ship(tmp_path)


def test_known_keys_go_as_numbers_and_rows_stay_the_same(ship: Ship) -> None:
    for rows in (ROWS, ROWS, [*ROWS[2:], ("web", "main", ["app+0x99", "app+0x30"], 13)]):
        ship.put(rows)
        assert ship.drain() == [Step.SENT]
    first, second, third = ship.server.stored.values()
    assert [len(series.known_keys.data) for series in first.series] == [0, 0]
    assert [len(series.known_keys.data) for series in second.series] == [3, 2]
    assert (len(second.binaries), second.frames.kinds.data, second.strings.blob) == (1, b"\0", b"")
    assert sum(len(series.new_keys.stacks.data) for series in third.series) == 1
    assert ship.server.rows == ship.expected
    assert ship.server.answers == [STORED] * 3
    assert ship.spool.state().records == 0


def test_new_numbering_costs_one_full_resend_of_the_same_sequence(ship: Ship) -> None:
    ship.put(ROWS)
    ship.drain()
    ship.server.forget(b"E" * 16)
    ship.put(ROWS)
    ship.put(ROWS)
    ship.drain()
    assert ship.server.answers == [STORED, UNKNOWN, STORED, STORED]
    assert ship.server.sequences == [1, 3, 3, 2]
    assert ship.server.rows == ship.expected


def test_keys_the_server_lost_are_forgotten_and_sent_in_full(ship: Ship) -> None:
    ship.put(ROWS)
    ship.drain()
    lost = max(ship.server.numbers[b"web"], key=ship.server.numbers[b"web"].__getitem__)
    del ship.server.numbers[b"web"][lost]
    ship.put(ROWS)
    ship.put(ROWS)
    ship.drain()
    assert ship.server.answers == [STORED, UNKNOWN, STORED, STORED]
    assert ship.server.rows == ship.expected


def test_lost_answer_is_stored_once(ship: Ship) -> None:
    ship.server.lost_answers = 1
    ship.put(ROWS)
    assert [ship.sender.step() for _ in range(3)] == [Step.DELAYED, Step.SENT, Step.EMPTY]
    assert ship.server.answers == [STORED, DUPLICATE]
    assert ship.server.rows == ship.expected


def test_newest_goes_first_then_the_oldest(ship: Ship) -> None:
    for _ in range(3):
        ship.put(ROWS)
    assert ship.sender.step() is Step.SENT
    ship.put(ROWS)
    ship.drain()
    assert ship.server.sequences == [3, 4, 1, 2]


def test_delay_keeps_the_window_and_refusal_lays_it_aside(ship: Ship, tmp_path: Path) -> None:
    ship.server.failures = [PushDelayed("busy"), PushRejected("too old", marks.LOSS_REASON_REJECTED_TIME)]
    ship.put(ROWS)
    assert ship.sender.step() is Step.DELAYED
    assert ship.sender.state().failures_in_a_row == 1
    assert ship.sender.step() is Step.REJECTED
    assert ship.sender.step() is Step.EMPTY
    assert ship.spool.take_losses() == {"cpu": {marks.LOSS_REASON_REJECTED_TIME: 49}}
    assert len(list((tmp_path / "quarantine").iterdir())) == 1
    ship.put(ROWS)
    assert ship.drain() == [Step.SENT]


def test_thread_sends_and_flush_waits_for_it(ship: Ship) -> None:
    ship.sender.start()
    for _ in range(3):
        ship.put(ROWS)
        ship.sender.wake()
    assert ship.sender.flush(timeout_s=10)
    ship.sender.close(timeout_s=10)
    assert ship.server.rows == ship.expected


def test_many_new_stacks_go_packed_and_arrive_the_same(ship: Ship) -> None:
    rows: list[Row] = [("web", "main", [f"app+{leaf:#x}", f"app+{leaf % 7:#x}", "app+0x1"], 1 + leaf % 5) for leaf in range(16, 2200)]
    ship.put(sorted(rows, key=lambda row: row[2][::-1]))
    assert ship.drain() == [Step.SENT]
    assert ship.server.rows == ship.expected
    assert ship.server.layouts == [2]


def test_fault_of_ours_with_one_window_does_not_hold_up_the_others(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship.put(ROWS)
    with monkeypatch.context() as broken:
        broken.setattr(ship.server, "rows", None)
        assert ship.sender.step() is Step.REJECTED
    assert ship.spool.take_losses() == {"cpu": {marks.LOSS_REASON_REJECTED_MALFORMED: 49}}
    ship.put(ROWS[:1])
    assert ship.drain() == [Step.SENT]


def test_an_answer_that_cannot_be_used_loses_nothing_of_the_window(ship: Ship) -> None:
    def on_answer(_: collector_pb2.PushResponse) -> None:
        raise RuntimeError("too many open files")

    ship.sender = Sender(ship.spool, ship.server.push, AGENT_ID, on_answer)
    ship.put(ROWS)
    assert ship.drain() == [Step.SENT]
    assert ship.server.rows == ship.expected and ship.spool.take_losses() == {}


def test_without_memory_the_window_waits(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship.put(ROWS)
    with monkeypatch.context() as full:
        full.setattr(ship.server, "failures", [MemoryError()])
        assert ship.sender.step() is Step.DELAYED
    assert ship.drain() == [Step.SENT]
    assert ship.server.rows == ship.expected


def test_slow_server_has_one_call_in_flight_and_the_rest_waits_on_disk(tmp_path: Path) -> None:
    """Windows come faster than they are taken: nothing piles up in memory, and nothing is lost."""
    server = FakeCollector()
    spool = Spool(tmp_path, lambda: START_UNIX_NS / 1e9)
    in_flight, most, may_answer = 0, 0, threading.Semaphore(0)

    def slow_push(request: collector_pb2.PushRequest) -> collector_pb2.PushResponse:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        may_answer.acquire()
        in_flight -= 1
        return server.push(request)

    sender = Sender(spool, slow_push, AGENT_ID)
    sender.start()
    for sequence in range(1, 24):
        start = START_UNIX_NS + sequence * WINDOW_NS
        for parcel in parcels_from_batch(batch_of(ROWS), WindowTime(start, start + WINDOW_NS), Numbering(EPOCH_UNIX_NS, sequence)):
            spool.append(parcel)
        sender.wake()
    assert spool.state().records == 23
    assert spool.state().memory_bytes == 0
    may_answer.release(1000)
    assert sender.flush(20)
    sender.close(5)
    assert (most, len(server.stored), spool.state().records) == (1, 23, 0)
