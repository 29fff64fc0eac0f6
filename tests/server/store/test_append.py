# SPDX-License-Identifier: Apache-2.0
"""Storing a push: once, whole or not at all, durable, with numbers for new keys."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from server.errors import Overloaded
from server.store.protocol import OVERFLOW_SERVICE
from server.store.push import Appended, AppendStatus
from server.store.sql_store import SqlStore, StoreLimits
from tests.support.batches import AGENT_ID, START_UNIX_NS, WINDOW_NS, batch_of, push_of
from tests.support.pushes import STACK, decoded, new_store, push_rows, totals, url_of

ROWS = [("web", "worker", STACK, 7), ("web", "worker", ["_text+0x10", *STACK], 23), ("db", "main", ["jit:scan;1", "app+0x20"], 5)]


def known_batch(service: bytes, keys: list[int], samples: list[int]) -> pb.FoldedBatch:
    """A batch whose rows are numbers only."""
    batch = batch_of([])
    series = batch.series.add(kind="cpu", labels=[pb.Label(name="service", value=service)], known_keys=columns.encode_ascending(keys))
    series.columns.add(name="samples", unit="count", merge=pb.MERGE_SUM, values=columns.encode_column(samples))
    return batch


def test_new_keys_get_numbers_from_one_on_and_every_row_is_there(store: SqlStore) -> None:
    appended = store.append(decoded(push_of(batch_of(ROWS))))
    assert appended.status is AppendStatus.STORED
    assert {index: keys.tolist() for index, keys in appended.new_key_ids.items()} == {0: [1, 2], 1: [1]}
    assert totals(store) == {"web": 30, "db": 5}


def test_dictionary_gives_back_frames_stacks_and_strings_leaf_first(store: SqlStore) -> None:
    push_rows(store, ROWS, 1)
    dictionary = store.dictionary("web")
    node, frames = int(dictionary.key_stacks[2]), []
    while node:
        frame = dictionary.node_frames[node]
        frames.append((int(dictionary.frame_kinds[frame]), int(dictionary.frame_offsets[frame]), int(dictionary.frame_is_return[frame])))
        node = int(dictionary.node_parents[node])
    assert frames == [(pb.PLACE_KIND_KERNEL, 0x10, 0), (pb.PLACE_KIND_FILE, 0x10, 1), (pb.PLACE_KIND_FILE, 0x20, 1)]
    assert dictionary.strings[dictionary.key_threads[2]] == b"worker"
    (info,) = store.binaries([int(dictionary.frame_refs[dictionary.node_frames[int(dictionary.key_stacks[1])]])])
    assert (info.path, info.segments[0]) == (b"/bin/app", (0x1000, 0x401000, 0x10000, 0x10000, 5))


def test_known_keys_add_to_the_rows_they_name(store: SqlStore) -> None:
    store.append(decoded(push_of(batch_of(ROWS))))
    request = push_of(known_batch(b"web", [1, 2], [2, 3]), sequence=2, dictionary_id=store.dictionary_id)
    assert store.append(decoded(request)).status is AppendStatus.STORED
    assert totals(store) == {"web": 35, "db": 5}


@pytest.mark.parametrize(("keys", "own_id", "unknown"), [([1, 2, 3, 9], True, [3, 9]), ([1, 2], False, [1, 2])])
def test_unknown_keys_are_named_and_nothing_is_stored(store: SqlStore, keys: list[int], own_id: bool, unknown: list[int]) -> None:
    store.append(decoded(push_of(batch_of(ROWS))))
    request = push_of(known_batch(b"web", keys, [1] * len(keys)), sequence=2, dictionary_id=store.dictionary_id if own_id else bytes(16))
    appended = store.append(decoded(request))
    assert appended.status is AppendStatus.UNKNOWN_KEYS
    assert {index: found.tolist() for index, found in appended.unknown_keys.items()} == {0: unknown}
    assert totals(store) == {"web": 30, "db": 5}
    again = store.append(decoded(push_of(batch_of(ROWS), sequence=2)))
    assert again.status is AppendStatus.STORED


def test_numbers_from_after_a_backup_are_not_taken_for_those_given_since(tmp_path: Path) -> None:
    """The backup gives key 2 to another stack; an agent that learnt key 2 before sends all of it again, and nothing is on a wrong stack."""
    (tmp_path / "live").mkdir()
    store = new_store(tmp_path / "live")
    push_rows(store, [("web", "t", ["app+0x10"], 1)], 1)
    store.close()
    shutil.copytree(tmp_path / "live", tmp_path / "backup")
    store = new_store(tmp_path / "live")
    learnt = store.dictionary_id
    push_rows(store, [("web", "t", ["app+0x20"], 1)], 2)
    store.close()
    store = new_store(tmp_path / "backup")
    push_rows(store, [("web", "t", ["app+0x666"], 1)], 3)
    appended = store.append(decoded(push_of(known_batch(b"web", [2], [7]), sequence=4, dictionary_id=learnt)))
    assert (appended.status, appended.unknown_keys[0].tolist()) == (AppendStatus.UNKNOWN_KEYS, [2])
    assert totals(store) == {"web": 2}
    store.close()


def test_same_push_five_times_at_once_is_stored_once(store: SqlStore) -> None:
    answers: list[Appended] = []
    threads = [threading.Thread(target=lambda: answers.append(store.append(decoded(push_of(batch_of(ROWS)))))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [AppendStatus.STORED, *[AppendStatus.DUPLICATE] * 4]
    assert totals(store) == {"web": 30, "db": 5}


def test_same_sequence_of_another_epoch_or_agent_is_another_window(store: SqlStore) -> None:
    for request in (push_of(batch_of(ROWS)), push_of(batch_of(ROWS), epoch_unix_ns=7), push_of(batch_of(ROWS), agent_id=AGENT_ID[::-1])):
        assert store.append(decoded(request)).status is AppendStatus.STORED
    assert totals(store) == {"web": 90, "db": 15}


def test_one_key_twice_in_a_push_is_one_row(store: SqlStore) -> None:
    push_rows(store, [("web", "worker", STACK, 7), ("web", "worker", STACK, 23)], 1)
    assert totals(store) == {"web": 30}
    assert store.dictionary("web").sizes[2] == 2  # the empty key and this one


def test_windows_in_any_order_are_stored_at_their_own_time(store: SqlStore) -> None:
    hour = 3600 * 10**9
    for sequence, late in ((3, 0), (1, 5 * hour), (2, 2 * hour)):
        store.append(decoded(push_of(batch_of(ROWS), sequence=sequence, start_unix_ns=START_UNIX_NS - late), START_UNIX_NS + WINDOW_NS))
    assert totals(store, span=(START_UNIX_NS - 2 * hour, START_UNIX_NS)) == {"web": 30, "db": 5}
    assert store.agents()[0].last_window_end_unix_ns == START_UNIX_NS + WINDOW_NS


def test_kind_that_is_not_known_is_stored_with_its_columns(store: SqlStore) -> None:
    batch = batch_of(ROWS)
    for series in batch.series:
        series.kind = "weather"
    batch.accounts[0].kind = "weather"
    store.append(decoded(push_of(batch)))
    assert [info.name for info in store.kinds()] == ["weather"]
    assert [(column.name, column.unit) for column in store.kinds()[0].columns] == [
        ("samples", "count"),
        ("ns", "ns"),
        ("observed", "count"),
    ]
    assert totals(store, "weather") == {"web": 30, "db": 5}


def test_series_beyond_the_limit_go_to_the_overflow_and_totals_stay(tmp_path: Path) -> None:
    store = new_store(tmp_path, StoreLimits(most_active_series=3))
    appended = store.append(decoded(push_of(batch_of([(f"service-{n}", "t", STACK, n + 2) for n in range(7)]))))
    assert totals(store) == {"service-0": 2, "service-1": 3, "service-2": 4, OVERFLOW_SERVICE: 5 + 6 + 7 + 8}
    assert sorted(appended.new_key_ids) == [0, 1, 2]  # keys of the overflow have no numbers for agents
    assert store.overflowed_windows == 4
    request = push_of(known_batch(b"service-5", [1], [1]), sequence=2, dictionary_id=store.dictionary_id)
    assert store.append(decoded(request)).status is AppendStatus.UNKNOWN_KEYS
    store.close()


def test_series_silent_for_a_day_make_room_for_others(tmp_path: Path) -> None:
    store = new_store(tmp_path, StoreLimits(most_active_series=1))
    day = 25 * 3600 * 10**9
    push_rows(store, [("old", "t", STACK, 7)], 1)
    push_rows(store, [("new", "t", STACK, 23)], 2, START_UNIX_NS + day)
    assert totals(store) == {"old": 7, "new": 23}
    store.close()


def test_full_disk_refuses_stores_nothing_and_recovers(store: SqlStore, tmp_path: Path) -> None:
    push_rows(store, ROWS, 1)
    before = store.dictionary("web").sizes
    draw = np.random.default_rng(7)
    stacks = [[f"app+{offset:#x}" for offset in draw.integers(1, 2**40, 20)] for _ in range(300)]
    big = decoded(push_of(batch_of([("web", "t", stack, 1) for stack in stacks] + [("fresh", "t", STACK, 1)]), sequence=2))
    cap = sa.event.listens_for(store._engine, "checkout")(lambda connection, *_: connection.execute("PRAGMA max_page_count=1"))
    with pytest.raises(Overloaded, match="full"):
        store.append(big)
    assert totals(store) == {"web": 30, "db": 5}  # reads go on
    assert store.dictionary("web").sizes == before
    sa.event.remove(store._engine, "checkout", cap)
    sa.event.listen(store._engine, "checkout", lambda connection, *_: connection.execute("PRAGMA max_page_count=1073741823"))
    assert store.append(big).status is AppendStatus.STORED
    assert totals(store) == {"web": 330, "db": 5, "fresh": 1}
    store.close()
    again = new_store(tmp_path)
    assert totals(again) == {"web": 330, "db": 5, "fresh": 1}
    again.close()


def test_locked_database_is_overloaded_and_passes(tmp_path: Path) -> None:
    store = new_store(tmp_path, StoreLimits(busy_timeout_s=0.05))
    other = sa.create_engine(url_of(tmp_path))
    with other.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(Overloaded, match="locked"):
            push_rows(store, ROWS, 1)
    other.dispose()
    push_rows(store, ROWS, 1)
    assert totals(store) == {"web": 30, "db": 5}
    store.close()


_WRITER = """
import sys
from pathlib import Path
from server.store.sql_store import SqlStore
from tests.support.batches import batch_of, push_of
from tests.support.pushes import STACK, decoded, url_of
store = SqlStore(url_of(Path(sys.argv[1])))
for sequence in range(1, 10_000):
    store.append(decoded(push_of(batch_of([("web", "t", [f"app+{sequence:#x}", *STACK], 7)]), sequence=sequence)))
    print(sequence, flush=True)
"""


def test_killed_writer_loses_nothing_it_acknowledged_and_doubles_nothing(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    for kills in range(1, 3):
        command = [sys.executable, "-c", _WRITER, str(tmp_path)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
        assert writer.stdout is not None
        acknowledged = 0
        while acknowledged < 11 * kills:
            acknowledged = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        writer.stdout.close()
        writer.wait()
        store = new_store(tmp_path)
        (total,) = totals(store).values()
        # The one after the last answer may have been committed before the kill, and is then a duplicate below.
        assert total in (7 * acknowledged, 7 * (acknowledged + 1))
        sent_again = [_push_again(store, sequence) for sequence in range(1, acknowledged + 2)]
        assert sent_again[:-1] == [AppendStatus.DUPLICATE] * acknowledged
        assert totals(store) == {"web": 7 * (acknowledged + 1)}
        assert store.dictionary("web").sizes[2] == acknowledged + 2
        store.close()


def _push_again(store: SqlStore, sequence: int) -> AppendStatus:
    return store.append(decoded(push_of(batch_of([("web", "t", [f"app+{sequence:#x}", *STACK], 7)]), sequence=sequence))).status
