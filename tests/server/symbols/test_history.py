# SPDX-License-Identifier: Apache-2.0
"""What was tried for a binary outlives the process; damaged files cost nothing but themselves."""

from pathlib import Path

import pytest

from server.symbols import history
from server.symbols.history import MAX_ATTEMPTS, History, Outcome
from server.symbols.identity import BinaryKey

KEY = BinaryKey(1, 1, b"\x12" * 20, b"\7" * 16)


def test_latest_attempt_of_each_source(tmp_path: Path) -> None:
    now = [1000.0]
    first = History(tmp_path, lambda: now[0])
    assert first.record(KEY).first_seen_unix_s == 1000.0
    first.note(KEY, first.attempt("agent", "", Outcome.OK, quality="dynamic"))
    first.note(KEY, first.attempt("debuginfod", "http://one", Outcome.NOT_FOUND, "does not have it"))
    now[0] = 2000.0
    first.note(KEY, first.attempt("debuginfod", "http://one", Outcome.OK, quality="dwarf"))
    first.note(KEY, first.attempt("debuginfod", "http://two", Outcome.MALFORMED, "x" * 900))
    found = History(tmp_path, lambda: 3000.0).record(KEY)
    assert found == first.record(KEY)
    assert [(a.origin, a.place, a.outcome, a.at_unix_s) for a in found.attempts] == [
        ("debuginfod", "http://two", "malformed", 2000.0),
        ("debuginfod", "http://one", "ok", 2000.0),
        ("agent", "", "ok", 1000.0),
    ]
    assert (found.first_seen_unix_s, len(found.attempts[0].reason)) == (1000.0, 300)


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_RECORDS", 20)
    kept = History(tmp_path, lambda: 7.0)
    for number in range(100):
        kept.note(KEY, kept.attempt("debuginfod", f"http://{number}", Outcome.OK))
        kept.record(BinaryKey(1, 1, bytes([number]) * 20, b""))
    assert len(kept.record(KEY).attempts) == MAX_ATTEMPTS
    assert len(list(tmp_path.rglob("*.json"))) <= 22


@pytest.mark.parametrize("content", ["", "[]", "{", '{"first_seen_unix_s": 7}', '{"first_seen_unix_s": "x", "attempts": [{}]}', "\0" * 99])
def test_damaged_record_begins_anew(tmp_path: Path, content: str) -> None:
    first = History(tmp_path, lambda: 1000.0)
    first.note(KEY, first.attempt("agent", "", Outcome.OK))
    [path] = tmp_path.rglob("*.json")
    path.write_text(content)
    found = History(tmp_path, lambda: 3000.0).record(KEY)
    assert (found.first_seen_unix_s, found.attempts) == (3000.0, ())
