# SPDX-License-Identifier: Apache-2.0
"""Notes on deploys: one for each version, replaced, taken back, bounded, and there after a restart."""

from pathlib import Path

import pytest

from server.errors import LimitExceeded
from server.store import notes
from server.store.protocol import DeployNote
from server.store.sql_store import SqlStore
from tests.support.pushes import new_store


def test_a_note_stays_until_it_is_replaced_or_taken_back(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.note_deploy(DeployNote("web", "1.2", "first"), 7)
    store.note_deploy(DeployNote("web", "1.3", "other"), 8)
    store.note_deploy(DeployNote("web", "1.2", "second"), 9)
    store.close()
    again = new_store(tmp_path)
    assert sorted(note.text for note in again.deploy_notes()) == ["other", "second"]
    again.note_deploy(DeployNote("web", "1.2", ""), 10)
    assert again.deploy_notes() == [DeployNote("web", "1.3", "other")]
    again.close()


def test_service_and_version_do_not_run_together(store: SqlStore) -> None:
    store.note_deploy(DeployNote("a", "bc", "one"), 7)
    store.note_deploy(DeployNote("ab", "c", "two"), 7)
    assert [note.text for note in store.deploy_notes()] == ["one", "two"]


def test_there_are_only_so_many(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 2)
    for version in ("1", "2"):
        store.note_deploy(DeployNote("web", version, "text"), 7)
    store.note_deploy(DeployNote("web", "2", "replaced"), 8)
    with pytest.raises(LimitExceeded, match="there are 2 notes"):
        store.note_deploy(DeployNote("web", "3", "text"), 9)
    assert [note.text for note in store.deploy_notes()] == ["text", "replaced"]
