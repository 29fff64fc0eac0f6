# SPDX-License-Identifier: Apache-2.0
"""Both ends of a connection are named when they are known for certain, and by address when they are not."""

from dataclasses import replace
from pathlib import Path

import pytest

from server.query.peers_query import edges, names_of_objects
from server.query.profile_query import ProfileQuery
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.support.batches import START_UNIX_NS
from tests.support.event_batches import EventRow, Window, event_batch, query_of
from tests.support.pushes import decoded, new_store, push_of

SPAN = TimeRange(START_UNIX_NS, START_UNIX_NS + 60 * 10**9)
HOSTS = {
    "web-1": (
        ["address:10.0.0.1"],
        [
            EventRow({"connects": 7, "bytes_out": 700}, "shop", object="out 10.0.0.9:5432"),
            EventRow({"connects": 2, "bytes_out": 20}, "shop", object="out 127.0.0.1:6379"),
            EventRow({"connects": 3, "bytes_out": 30}, "shop", object="out 10.0.0.9:7000"),
            EventRow({"connects": 1, "bytes_out": 1}, "shop", object="out 192.0.2.1:443"),
            EventRow({"accepts": 2}, "cache", object="in :6379"),
        ],
    ),
    "web-2": (
        ["address:10.0.0.2"],
        [
            EventRow({"connects": 5, "bytes_in": 500}, "shop", object="out 10.0.0.9:5432"),
            EventRow({"connects": 4, "bytes_out": 4}, "shop", object="out 127.0.0.1:6379"),
        ],
    ),
    "db-1": (
        ["address:10.0.0.9", "address:2001:db8::9", "kallsyms_hidden"],
        [
            EventRow({"accepts": 12}, "postgres", object="in :5432"),
            EventRow({"accepts": 1}, "one", object="in :7000"),
            EventRow({"accepts": 1}, "two", object="in :7000"),
            EventRow({"connects": 9, "bytes_out": 9}, "backup", object="out [2001:db8::9]:5432"),
        ],
    ),
}


@pytest.fixture
def query(tmp_path: Path) -> ProfileQuery:
    store = new_store(tmp_path)
    for host, (flags, rows) in HOSTS.items():
        batch = event_batch(Window({"tcp": rows}, host.encode()))
        push = decoded(push_of(batch, agent_id=host.encode().ljust(16, b".")))
        store.append(replace(push, host=replace(push.host, flags=tuple(flags))))
    return query_of(store)


def test_who_talks_to_whom(query: ProfileQuery) -> None:
    found = [(edge.caller, edge.service, edge.host, edge.address, edge.values["connects"]) for edge in edges(query, SPAN)]
    assert found == [
        ("shop", "postgres", "db-1", "", 12),
        ("shop", "", "", "10.0.0.9:7000", 3),  # two services listen there
        ("shop", "cache", "web-1", "", 2),
        ("backup", "postgres", "db-1", "", 9),
        ("shop", "", "", "127.0.0.1:6379", 4),  # nobody is known to listen on web-2
        ("shop", "", "", "192.0.2.1:443", 1),
    ]


def test_an_object_has_a_name_when_it_means_the_same_on_all_hosts(query: ProfileQuery) -> None:
    named = names_of_objects(query, parse_selector('tcp{service="shop"}'), SPAN)
    assert named == {"out 10.0.0.9:5432": ("postgres", "db-1")}  # not 127.0.0.1:6379, which is nobody on web-2
    of_host = names_of_objects(query, parse_selector('tcp{service="shop",host="web-1"}'), SPAN)
    assert of_host["out 127.0.0.1:6379"] == ("cache", "web-1")


def test_nothing_is_no_edge(tmp_path: Path) -> None:
    assert edges(query_of(new_store(tmp_path)), SPAN) == []
