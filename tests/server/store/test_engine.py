# SPDX-License-Identifier: Apache-2.0
"""The border to the database: durability settings, transactions, errors in our words, and the lock of the data directory."""

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from server.errors import ConfigError, ServerError
from server.store.engine import DirectoryLock, address_of_file, open_engine, reading, writing
from tests.support.pushes import url_of


def test_sqlite_is_durable_and_checks_keys(tmp_path: Path) -> None:
    engine = open_engine(url_of(tmp_path))
    with engine.connect() as connection:
        pragmas = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("journal_mode", "synchronous", "foreign_keys")]
    assert pragmas == ["wal", 2, 1]
    engine.dispose()


def test_write_after_read_in_one_transaction_waits_instead_of_failing(tmp_path: Path) -> None:
    engine = open_engine(url_of(tmp_path))
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE t (n INTEGER)")
    with writing(engine) as first:
        first.exec_driver_sql("SELECT count(*) FROM t").scalar_one()
        with reading(engine) as other:
            assert other.exec_driver_sql("SELECT count(*) FROM t").scalar_one() == 0
            first.exec_driver_sql("INSERT INTO t VALUES (7)")
    with reading(engine) as connection:
        assert connection.exec_driver_sql("SELECT n FROM t").scalar_one() == 7
    engine.dispose()


def test_reader_sees_one_moment(tmp_path: Path) -> None:
    engine = open_engine(url_of(tmp_path))
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE t (n INTEGER)")
    with reading(engine) as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM t").scalar_one() == 0
        with writing(engine) as writer:
            writer.exec_driver_sql("INSERT INTO t VALUES (7)")
        assert reader.exec_driver_sql("SELECT count(*) FROM t").scalar_one() == 0
    engine.dispose()


def test_file_that_is_no_database_is_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database" * 1000)
    engine = open_engine(url_of(tmp_path))
    with pytest.raises(ServerError, match=r"damaged .*restore a backup"), reading(engine) as connection:
        connection.execute(sa.text("SELECT 1"))
    engine.dispose()


@pytest.mark.parametrize("url", ["", "nonsense", "mongodb://secret@host/db"])
def test_address_that_makes_no_sense_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        open_engine(url)
    assert "secret" not in str(caught.value)


def test_second_server_on_one_directory_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    code = "import sys; from pathlib import Path; from server.store.engine import DirectoryLock; DirectoryLock(Path(sys.argv[1]))"
    second = [sys.executable, "-c", code, str(tmp_path)]
    refused = subprocess.run(second, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert refused.returncode == 1
    assert "another server (process" in refused.stderr
    lock.release()
    DirectoryLock(tmp_path).release()


def test_directory_that_cannot_hold_the_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(ConfigError, match=r"cannot write to .*/lock: Is a directory"):
        DirectoryLock(tmp_path)


@pytest.mark.parametrize("name", ["what?.db", "50%20.db", "a#b.db", "b\udcff.db"])
def test_file_of_any_name_is_the_file_that_is_opened(tmp_path: Path, name: str) -> None:
    """In an address as text, what follows a question mark is not the file's name."""
    engine = open_engine(address_of_file(tmp_path / name))
    with writing(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE t (n INTEGER)")
    engine.dispose()
    assert [found.name for found in tmp_path.iterdir()] == [name]
