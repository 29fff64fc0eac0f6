# SPDX-License-Identifier: Apache-2.0
"""Agents and binaries: newest facts win, two agents of one name are flagged, files with one build id are two."""

from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.errors import BadRequest
from server.store.sql_store import SqlStore
from tests.support.batches import AGENT_ID, EPOCH_UNIX_NS, START_UNIX_NS, WINDOW_NS, batch_of, push_of
from tests.support.pushes import STACK, decoded, new_store, push_rows

ROWS = [("web", "t", STACK, 7)]


def test_facts_of_the_newest_window_stand_whatever_comes_later(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for sequence, (start, rate) in enumerate([(0, 99), (2, 49), (1, 99)], 1):
        batch = batch_of(ROWS)
        batch.host.rate_hz, batch.host.flags[:] = rate, ["kallsyms_hidden"]
        start_unix_ns = START_UNIX_NS + start * WINDOW_NS
        store.append(decoded(push_of(batch, sequence=sequence, start_unix_ns=start_unix_ns), START_UNIX_NS + sequence * WINDOW_NS * 3))
    for opened in (store, new_store(tmp_path)):
        (agent,) = opened.agents()
        assert (agent.rate_hz, agent.last_window_end_unix_ns) == (49, START_UNIX_NS + 3 * WINDOW_NS)
        assert (agent.first_seen_unix_ns, agent.last_seen_unix_ns) == (START_UNIX_NS + 3 * WINDOW_NS, START_UNIX_NS + 9 * WINDOW_NS)
        assert (agent.host, agent.epoch_unix_ns, agent.kernel_release, agent.online_cpus) == ("web-1", EPOCH_UNIX_NS, "6.1.0", 2)
        assert agent.flags == ("kallsyms_hidden",)
        opened.close()


def test_two_agents_of_one_name_are_flagged(store: SqlStore) -> None:
    for agent_id in (AGENT_ID, AGENT_ID[::-1]):
        store.append(decoded(push_of(batch_of(ROWS), agent_id=agent_id)))
    push_rows(store, ROWS, 1, host=b"db-1")
    assert [(agent.host, agent.flags) for agent in store.agents()] == [
        ("db-1", ()),
        ("web-1", ("host_name_shared",)),
        ("web-1", ("host_name_shared",)),
    ]


def test_binaries_with_one_build_id_and_other_content_are_two(store: SqlStore) -> None:
    rows: set[int] = set()
    for content in (b"a" * 16, b"b" * 16, b"a" * 16):
        batch = batch_of(ROWS)
        batch.binaries[1].id.content_hash = content
        rows.update(store.append(decoded(push_of(batch, sequence=len(rows) + content[0]))).binary_row_ids)
    assert len(rows) == 2


def test_files_without_any_id_are_told_apart_by_path(store: SqlStore) -> None:
    rows: list[int] = []
    for sequence, path in enumerate((b"/a", b"/b", b"/a"), 1):
        batch = batch_of(ROWS)
        batch.binaries[1].id.CopyFrom(pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_NONE))
        batch.binaries[1].path = path
        rows += store.append(decoded(push_of(batch, sequence=sequence))).binary_row_ids
    assert rows[0] == rows[2] != rows[1]
    assert [info.path for info in store.binaries(rows)] == [b"/a", b"/b", b"/a"]


def test_seventeen_thousand_binaries_keep_their_names(store: SqlStore) -> None:
    names = [f"bin{n}" for n in range(17_000)]
    store.append(decoded(push_of(batch_of([("web", "t", [f"{name}+0x1"], 1) for name in names]))))
    dictionary = store.dictionary("web")
    assert {info.path for info in store.binaries(dictionary.frame_refs[1:].tolist())} == {f"/bin/{name}".encode() for name in names}


def test_unknown_binary_is_a_bad_request(store: SqlStore) -> None:
    with pytest.raises(BadRequest, match="no binary 77"):
        store.binaries([77])
