# SPDX-License-Identifier: Apache-2.0
"""A task that fails costs itself: it is logged, counted and told of until it succeeds, and others go on."""

import pytest

from server.errors import Overloaded
from server.upkeep import Upkeep


def test_what_fails_is_told_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    upkeep, done = Upkeep(), list[str]()
    failures: list[Exception] = [MemoryError(), RuntimeError("dictionary changed size"), Overloaded("the disk is full")]

    def task() -> None:
        if failures:
            raise failures.pop()
        done.append("task")

    told = []
    for _ in range(4):
        upkeep.attempt("compaction", task)
        upkeep.attempt("retention", lambda: done.append("other"))
        told.append(dict(upkeep.failing()))
    assert told == [
        {"compaction": "the disk is full"},
        {"compaction": "RuntimeError: dictionary changed size"},
        {"compaction": "MemoryError: "},
        {},
    ]
    assert (upkeep.failures, done) == (3, ["other", "other", "other", "task", "other"])
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]
