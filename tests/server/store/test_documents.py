# SPDX-License-Identifier: Apache-2.0
"""Documents: replaced by key, bounded, gone when they expire, and there after a restart."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from server.errors import LimitExceeded, ServerError
from server.store import documents, tables
from server.store.documents import Collection, Document
from server.store.engine import open_engine, writing
from server.store.sql_store import SqlStore
from tests.support.pushes import new_store, url_of

NOTES = Collection("notes", 3)
VIEWS = Collection("views", 2, drops_oldest=False)


def keys(store: SqlStore, collection: Collection, now: int = 0) -> list[str]:
    return [document.key for document in store.documents.newest(collection, now)]


def test_a_document_is_kept_whole_and_replaced_by_its_key(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.documents.put(NOTES, Document("a", 7, {"text": "ünï\0\ud800", "n": [1, None, 2.5]}), 7)
    store.documents.put(NOTES, Document("a", 9, {"text": "second"}), 9)
    store.documents.put(VIEWS, Document("a", 8, {"text": "of another collection"}), 9)
    store.close()
    again = new_store(tmp_path)
    assert again.documents.get(NOTES, "a", 10) == Document("a", 9, {"text": "second"})
    assert again.documents.get(NOTES, "b", 10) is None
    again.documents.put(NOTES, Document("b", 1, {"text": "ünï\0\ud800", "n": [1, None, 2.5]}), 10)
    found = again.documents.get(NOTES, "b", 10)
    assert found is not None and found.body == {"text": "ünï\0\ud800", "n": [1, None, 2.5]}
    assert again.documents.drop(NOTES, "b") and not again.documents.drop(NOTES, "b")
    assert keys(again, VIEWS) == ["a"]
    again.close()


def test_the_latest_come_first_and_a_time_cuts(store: SqlStore) -> None:
    for key, at in (("a", 5), ("b", 9), ("c", 7)):
        store.documents.put(NOTES, Document(key, at, {}), 0)
    assert keys(store, NOTES) == ["b", "c", "a"]
    assert [d.key for d in store.documents.newest(NOTES, 0, since_unix_ns=7)] == ["b", "c"]
    assert [d.key for d in store.documents.newest(NOTES, 0, most=1)] == ["b"]


def test_the_oldest_leaves_or_the_newest_is_refused(store: SqlStore) -> None:
    for at in range(5):
        store.documents.put(NOTES, Document(f"k{at}", at, {}), 0)
    assert keys(store, NOTES) == ["k4", "k3", "k2"]
    for key in ("a", "b", "a"):
        store.documents.put(VIEWS, Document(key, 1, {}), 0)
    with pytest.raises(LimitExceeded, match="there are 2 views already"):
        store.documents.put(VIEWS, Document("c", 2, {}), 0)
    assert sorted(keys(store, VIEWS)) == ["a", "b"]


def test_what_has_expired_is_gone_at_once_and_makes_room(store: SqlStore) -> None:
    for key, expires in (("a", 100), ("b", 0)):
        store.documents.put(VIEWS, Document(key, 1, {}, expires), 1)
    assert sorted(keys(store, VIEWS, 99)) == ["a", "b"]
    assert keys(store, VIEWS, 100) == ["b"]
    assert store.documents.get(VIEWS, "a", 100) is None
    store.documents.put(VIEWS, Document("c", 2, {}), 100)
    assert sorted(keys(store, VIEWS, 1)) == ["b", "c"]


def test_a_large_one_is_refused_and_a_damaged_one_said(store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BODY_BYTES", 100)
    with pytest.raises(LimitExceeded, match="bytes are too many to keep"):
        store.documents.put(NOTES, Document("a", 1, {"text": "x" * 100}), 1)
    store.documents.put(NOTES, Document("a", 1, {"text": "x"}), 1)
    engine = open_engine(url_of(tmp_path))
    with writing(engine) as connection:
        connection.execute(sa.update(tables.documents).values(body=b"no zstd"))
    engine.dispose()
    with pytest.raises(ServerError, match="damaged"):
        store.documents.get(NOTES, "a", 1)
