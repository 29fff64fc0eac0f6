# SPDX-License-Identifier: Apache-2.0
"""Two agents' sources of unwind tables before a real server: the first decodes, the second need not even have the file."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from agent.process.elf_header import read_identity
from agent.records.binary import BinaryId
from agent.records.unwind import TableMiss, UnwindTable
from agent.ship.client import Client
from agent.ship.fleet_tables import FleetTableClient
from agent.unwind.source import SourceCounts, SourceSettings, TableSource
from tests.support.servers import RunningServer, serving

WAIT_S = 60.0
PROGRAM = os.path.realpath(sys.executable)


@contextmanager
def source_of(server: RunningServer, directory: Path) -> Iterator[TableSource]:
    client = Client(server.grpc)
    source = TableSource(SourceSettings(directory), FleetTableClient(client))
    try:
        yield source
    finally:
        source.close(WAIT_S)
        client.close()


def settle(source: TableSource, binary_id: BinaryId, fd: int | None) -> UnwindTable:
    until_s = time.monotonic() + WAIT_S
    while (found := source.get(binary_id, fd)) is TableMiss.PENDING:
        assert time.monotonic() < until_s
        time.sleep(0.01)
    assert isinstance(found, UnwindTable), found
    return found


def test_each_binary_is_decoded_once_for_the_fleet(tmp_path: Path) -> None:
    fd = os.open(PROGRAM, os.O_RDONLY)
    binary_id = read_identity(lambda offset, size: os.pread(fd, size, offset), os.fstat(fd).st_size).id
    with serving(tmp_path / "server") as server:
        with source_of(server, tmp_path / "first") as first:
            made = settle(first, binary_id, fd)
            assert first.counts() == SourceCounts(decoded=1)
        with source_of(server, tmp_path / "second") as second:
            fetched = settle(second, binary_id, None)
            assert second.counts() == SourceCounts(from_fleet=1)
    os.close(fd)
    assert np.array_equal(made.addresses, fetched.addresses)
    assert np.array_equal(made.rules, fetched.rules)
