# SPDX-License-Identifier: Apache-2.0
"""Chunks of dictionaries on disk: few however often they grow, and the same dictionary after a restart."""

from pathlib import Path

import numpy as np

from server.store.sql_store import SqlStore
from tests.support.pushes import STACK, new_store, push_rows, totals


def chunk_count(store: SqlStore) -> int:
    with store._engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM dictionary_chunks").scalar_one())


def test_many_small_growths_leave_few_chunks_and_a_restart_reads_them(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for sequence in range(1, 70):
        push_rows(store, [("web", f"thread-{sequence}", [f"app+{sequence:#x}", *STACK], 7)], sequence)
    assert chunk_count(store) <= 9
    before = store.dictionary("web")
    store.close()
    again = new_store(tmp_path)
    after = again.dictionary("web")
    for name in before.__dataclass_fields__:
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert totals(again) == {"web": 69 * 7}
    push_rows(again, [("web", "thread-23", ["app+0x17", *STACK], 1)], 100)
    assert again.dictionary("web").sizes == before.sizes
    again.close()


def test_windows_with_known_keys_write_no_chunk(store: SqlStore) -> None:
    for sequence in (1, 2):
        push_rows(store, [("web", "t", STACK, 7)], sequence)
    assert chunk_count(store) == 1


def test_service_that_is_not_there_has_empty_entries_only(store: SqlStore) -> None:
    assert store.dictionary("none").sizes == (1, 1, 1, 1)
