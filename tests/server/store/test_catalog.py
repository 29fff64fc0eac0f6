# SPDX-License-Identifier: Apache-2.0
"""Series, services and versions with the times they were seen."""

from pathlib import Path

from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import MINUTE_NS, MINUTE_UNIX_NS, STACK, decoded, new_store, push_rows


def push_version(store: SqlStore, version: str, minute: int, host: bytes = b"web-1") -> None:
    batch = batch_of([("web", "t", STACK, 7)], version=version, host=host)
    request = push_of(batch, sequence=minute + 1, start_unix_ns=MINUTE_UNIX_NS + minute * MINUTE_NS, agent_id=host.ljust(16, b"."))
    store.append(decoded(request))


def test_versions_stand_in_the_order_of_their_first_window(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    push_version(store, "1.2", 5)
    push_version(store, "1.1", 2)
    push_version(store, "1.2", 3, b"web-2")
    for opened in (store, new_store(tmp_path)):
        (service,) = opened.catalog(MINUTE_UNIX_NS, MINUTE_UNIX_NS + 10 * MINUTE_NS)
        seen = [
            (v.version, (v.first_unix_ns - MINUTE_UNIX_NS) // MINUTE_NS, (v.last_unix_ns - MINUTE_UNIX_NS) // MINUTE_NS)
            for v in service.versions
        ]
        assert seen == [("1.1", 2, 2), ("1.2", 3, 5)]
        assert (service.service, service.hosts) == ("web", 2)
        opened.close()


def test_series_and_services_outside_of_the_range_are_left_out(store: SqlStore) -> None:
    push_rows(store, [("old", "t", STACK, 7)], 1, MINUTE_UNIX_NS)
    push_rows(store, [("new", "t", STACK, 7)], 2, MINUTE_UNIX_NS + 10 * MINUTE_NS)
    until, later = MINUTE_UNIX_NS + MINUTE_NS, (MINUTE_UNIX_NS + 5 * MINUTE_NS, MINUTE_UNIX_NS + 20 * MINUTE_NS)
    assert [info.service for info in store.catalog(MINUTE_UNIX_NS, until)] == ["old"]
    assert [info.labels for info in store.series("cpu", *later)] == [{"host": "web-1", "service": "new"}]
    assert store.series("offcpu", MINUTE_UNIX_NS, until) == []
