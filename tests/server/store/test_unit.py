# SPDX-License-Identifier: Apache-2.0
"""Units of work: memory follows the disk, in both directions."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from server.errors import Overloaded
from server.store import unit as units
from server.store.engine import open_engine
from server.store.unit import UnitOfWork
from tests.support.pushes import url_of


def test_steps_run_after_a_commit_in_order(tmp_path: Path) -> None:
    engine, done = open_engine(url_of(tmp_path)), list[str]()
    with UnitOfWork(engine).begin() as unit:
        unit.on_commit.extend([lambda: done.append("first"), lambda: done.append("second")])
        unit.on_rollback.append(lambda: done.append("undone"))
        assert done == []
    assert done == ["first", "second"]
    engine.dispose()


def test_steps_are_undone_in_reverse_and_the_next_unit_goes_on(tmp_path: Path) -> None:
    engine, done = open_engine(url_of(tmp_path)), list[str]()
    work = UnitOfWork(engine)
    with pytest.raises(KeyError), work.begin() as unit:
        unit.connection.execute(sa.text("CREATE TABLE t (n INTEGER)"))
        unit.on_rollback.extend([lambda: done.append("first"), lambda: done.append("second")])
        unit.on_commit.append(lambda: done.append("committed"))
        raise KeyError
    assert done == ["second", "first"]
    with work.begin():
        work.wait_published()
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()


def test_writers_that_wait_too_long_are_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "QUEUE_TIMEOUT_S", 0.01)
    engine = open_engine(url_of(tmp_path))
    work = UnitOfWork(engine)
    with work.begin(), pytest.raises(Overloaded, match="waited"), work.begin():
        pass
    engine.dispose()
