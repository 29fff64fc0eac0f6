# SPDX-License-Identifier: Apache-2.0
"""What a push is answered, and what is counted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns, symbols_pb2
from server.errors import BadRequest
from server.ingest.push import MOST_WANTED, Ingest
from server.ingest.window_time import TimeRejected
from server.store.protocol import BinaryInfo
from server.store.sql_store import SqlStore
from server.symbols.identity import BinaryKey, key_of
from tests.support.batches import START_UNIX_NS, WINDOW_NS, batch_of, binary, push_of
from tests.support.pushes import new_store, totals

NOW = START_UNIX_NS + WINDOW_NS
ROWS = [("web", "t", ["app+0x10", "lib+0x20"], 7), ("web", "t", ["lib+0x20"], 23)]


class FakeSymbols:
    """Wants whatever a predicate says; looks for nothing by itself."""

    def __init__(self, *paths: bytes) -> None:
        self.paths = paths
        self.seen: list[BinaryInfo] = []

    def wanted(self, binary: BinaryInfo) -> bool:
        self.seen.append(binary)
        return binary.path in self.paths

    def wanted_some(self, most: int) -> Sequence[BinaryKey]:
        return [key_of(info) for info in self.seen if info.path in self.paths][:most]

    def pending(self) -> int:
        return 0

    def upload(self, request: symbols_pb2.UploadRequest) -> symbols_pb2.UploadResponse:
        raise BadRequest(f"upload of {request.size_bytes} bytes is not taken here")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


def test_answer_gives_numbers_settings_time_and_what_is_wanted(store: SqlStore) -> None:
    ingest = Ingest(store, FakeSymbols(b"/bin/lib"), lambda: NOW, rate_hz=49)
    answer = ingest.push(push_of(batch_of(ROWS)))
    assert answer.status == collector.PUSH_STATUS_STORED
    assert answer.dictionary_id == store.dictionary_id
    assert [(one.series, columns.decode_column(one.keys, 9).tolist()) for one in answer.new_key_ids] == [(0, [1, 2])]
    assert [request.id for request in answer.wanted] == [binary("lib").id]
    assert (answer.settings.rate_hz, answer.server_unix_ns) == (49, NOW)


def test_wanted_binaries_are_few_at_a_time(store: SqlStore) -> None:
    names = [f"lib{n}" for n in range(23)]
    ingest = Ingest(store, FakeSymbols(*(f"/bin/{name}".encode() for name in names)), lambda: NOW)
    answer = ingest.push(push_of(batch_of([("web", "t", [f"{name}+0x1"], 1) for name in names])))
    assert len(answer.wanted) == MOST_WANTED


def test_outcomes_are_counted_by_reason(store: SqlStore) -> None:
    ingest = Ingest(store, None, lambda: NOW)
    request = push_of(batch_of(ROWS))
    ingest.push(request)
    ingest.push(request)
    for bad, error in (
        (push_of(batch_of(ROWS), agent_id=b"?"), BadRequest),
        (push_of(batch_of(ROWS), start_unix_ns=NOW + 10**13), TimeRejected),
    ):
        with pytest.raises(error):
            ingest.push(bad)
    ingest.push(push_of(batch_of(ROWS), sequence=2, start_unix_ns=0))
    counted = ingest.counters()
    assert {name: counted[name] for name in counted if name.startswith("pushes_")} == {
        "pushes_stored_total": 2,
        "pushes_duplicate_total": 1,
        "pushes_rejected_malformed_total": 1,
        "pushes_rejected_time_total": 1,
    }
    assert (counted["rows_stored_total"], counted["new_keys_total"], counted["windows_time_suspect_total"]) == (4, 4, 1)


def test_window_without_a_time_is_stored_at_the_servers_and_flagged(store: SqlStore) -> None:
    Ingest(store, None, lambda: NOW).push(push_of(batch_of(ROWS), start_unix_ns=2_300_000_000))
    assert totals(store, span=(NOW - WINDOW_NS, NOW)) == {"web": 30}
    assert store.agents()[0].flags == ("time_suspect",)
