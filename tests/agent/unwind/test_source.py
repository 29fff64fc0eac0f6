# SPDX-License-Identifier: Apache-2.0
"""Tests of where tables come from, with a decoder and a fleet that behave."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from agent.records.binary import BinaryId
from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.unwind.source import Found, SourceCounts, SourceSettings, TableSource
from agent.unwind.table_file import identity_digest, pack_miss, pack_table
from emberwatch.v1 import batch_pb2 as pb

TABLE = UnwindTable(np.array([0x1000, 0x1040], np.uint64), np.array([rule(RuleKind.SP, 1), 0], np.uint32))
WAIT_S = 60.0


def binary(number: int) -> BinaryId:
    return BinaryId(pb.BUILD_ID_KIND_GNU, bytes((number,)) * 20, bytes(16))


class FakeDecoder:
    """Gives every file the same table, once it may."""

    def __init__(self) -> None:
        self.may_run = threading.Event()
        self.may_run.set()
        self.is_started = False
        self.sizes: list[int] = []
        self.answer: Callable[[bytes], bytes] = lambda digest: pack_table(TABLE, digest)

    def start(self) -> None:
        self.is_started = True

    def decode(self, source: int, digest: bytes) -> bytes:
        assert self.may_run.wait(WAIT_S)
        assert self.is_started
        self.sizes.append(os.fstat(source).st_size)
        return self.answer(digest)

    def close(self) -> None:
        self.is_started = False


class FakeFleet:
    """Tables by digest."""

    def __init__(self) -> None:
        self.tables: dict[bytes, bytes] = {}

    def fetch(self, binary_id: BinaryId) -> bytes | None:
        return self.tables.get(identity_digest(binary_id))

    def offer(self, binary_id: BinaryId, packed: bytes) -> None:
        self.tables[identity_digest(binary_id)] = packed


@pytest.fixture
def source_fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def decoder() -> FakeDecoder:
    return FakeDecoder()


def settle(source: TableSource, binary_id: BinaryId, fd: int | None) -> Found:
    """Ask until there is an answer."""
    until_s = time.monotonic() + WAIT_S
    while (found := source.get(binary_id, fd)) is TableMiss.PENDING:
        assert time.monotonic() < until_s
        time.sleep(0.002)
    return found


def test_a_table_is_made_once_and_then_comes_from_memory_and_disk(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    assert isinstance(settle(source, binary(1), source_fd), UnwindTable)
    assert isinstance(source.get(binary(1), None), UnwindTable)
    assert source.counts() == SourceCounts(decoded=1)
    source.close()
    again = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    assert isinstance(settle(again, binary(1), None), UnwindTable)
    assert again.counts() == SourceCounts(from_disk=1)
    assert len(decoder.sizes) == 1
    again.close()


def test_get_never_waits_for_the_decoder(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    decoder.may_run.clear()
    source = TableSource(SourceSettings(tmp_path / "tables", waiting=2), decoder=decoder)
    for _ in range(3):
        assert [source.get(binary(number), source_fd) for number in (1, 2, 3)] == [TableMiss.PENDING] * 3
    assert source.counts().put_off == 3
    decoder.may_run.set()
    for number in (1, 2, 3):
        assert isinstance(settle(source, binary(number), source_fd), UnwindTable)
    assert len(decoder.sizes) == 3
    source.close()


def order_files(source: TableSource, directory: Path, *sizes: int) -> None:
    """Order binaries 0, 1, ... of these sizes; the worker holds the first when the others come."""
    for number, size_bytes in enumerate(sizes):
        path = directory / str(number)
        path.touch()
        os.truncate(path, size_bytes)
        fd = os.open(path, os.O_RDONLY)
        source.get(binary(number), fd)
        os.close(fd)
        until = time.monotonic() + WAIT_S
        while not number and source.waiting and time.monotonic() < until:
            time.sleep(0.001)


def test_large_files_let_all_others_pass(tmp_path: Path, decoder: FakeDecoder) -> None:
    decoder.may_run.clear()
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    order_files(source, tmp_path, 5, 17 << 20, 7000, 13)
    decoder.may_run.set()
    settle(source, binary(1), None)
    assert decoder.sizes == [5, 7000, 13, 17 << 20]
    source.close()


def test_what_is_used_most_is_made_first_for_its_size(tmp_path: Path, decoder: FakeDecoder) -> None:
    decoder.may_run.clear()
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    order_files(source, tmp_path, 5, 17 << 20, 33 << 20, 7000, 13)
    source.prefer({binary(1): 23, binary(2): 23, binary(4): 11, binary(8): 97})
    decoder.may_run.set()
    settle(source, binary(3), None)
    assert decoder.sizes == [5, 17 << 20, 13, 33 << 20, 7000]
    source.close()


def test_what_waits_at_the_end_is_let_go(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    decoder.may_run.clear()
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    for number in range(7):
        source.get(binary(number), source_fd)
    source.close(0.0)
    decoder.may_run.set()
    source.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert len(decoder.sizes) <= 1
    assert source.get(binary(8), source_fd) is TableMiss.PENDING


def test_descriptors_are_given_back(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    settle(source, binary(1), source_fd)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(2, 40):
        settle(source, binary(number), source_fd)
    source.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_reason_is_an_answer_and_is_counted(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    decoder.answer = lambda digest: pack_miss(TableMiss.NO_RULES, digest)
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    assert settle(source, binary(1), source_fd) is TableMiss.NO_RULES
    assert source.misses() == {TableMiss.NO_RULES: 1}
    source.close()


def test_a_child_that_writes_nonsense_costs_one_table(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    decoder.answer = lambda digest: pack_table(TABLE, bytes(16))
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    assert settle(source, binary(1), source_fd) is TableMiss.MALFORMED
    source.close()


def test_a_file_that_is_gone_is_asked_for_again_when_it_is_back(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    source = TableSource(SourceSettings(tmp_path / "tables"), decoder=decoder)
    assert settle(source, binary(1), None) is TableMiss.UNREADABLE
    assert isinstance(settle(source, binary(1), source_fd), UnwindTable)
    source.close()


def test_one_agent_decodes_for_the_fleet(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    fleet = FakeFleet()
    first = TableSource(SourceSettings(tmp_path / "first"), fleet, decoder)
    settle(first, binary(1), source_fd)
    first.close()
    second = TableSource(SourceSettings(tmp_path / "second"), fleet, decoder)
    assert isinstance(settle(second, binary(1), None), UnwindTable)
    assert second.counts() == SourceCounts(from_fleet=1)
    assert len(decoder.sizes) == 1
    second.close()


def test_a_bad_table_of_the_fleet_is_refused_and_made_here(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    fleet = FakeFleet()
    fleet.tables[identity_digest(binary(1))] = pack_table(TABLE, identity_digest(binary(2)))
    source = TableSource(SourceSettings(tmp_path / "tables"), fleet, decoder)
    assert isinstance(settle(source, binary(1), source_fd), UnwindTable)
    assert source.counts() == SourceCounts(decoded=1, rejected_from_fleet=1)
    source.close()


def test_memory_is_bounded_and_what_left_comes_back_from_the_disk(tmp_path: Path, decoder: FakeDecoder, source_fd: int) -> None:
    table_bytes = TABLE.addresses.nbytes + TABLE.rules.nbytes
    source = TableSource(SourceSettings(tmp_path / "tables", held_bytes=2 * table_bytes), decoder=decoder)
    for number in (1, 2, 3):
        settle(source, binary(number), source_fd)
    assert isinstance(source.get(binary(3), None), UnwindTable)
    assert source.get(binary(1), None) is TableMiss.PENDING
    assert isinstance(settle(source, binary(1), None), UnwindTable)
    assert source.counts() == SourceCounts(from_disk=1, decoded=3)
    source.close()
