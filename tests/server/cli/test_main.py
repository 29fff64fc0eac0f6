# SPDX-License-Identifier: Apache-2.0
"""The commands: mistakes of the user end with one sentence and a status that is not 0, never with a traceback."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from server.cli.main import main


def said(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output.strip().splitlines()[-1]


@pytest.mark.parametrize("duration", ["0", "-1", "nan", "inf", "86401"])
def test_time_that_cannot_be_recorded(duration: str) -> None:
    status, words = said("record", "--duration", duration)
    assert status == 2
    assert words.startswith("Error: Invalid value for '--duration'")
    assert "above 0 and at most 86400" in words


def test_only_locks_are_held() -> None:
    status, words = said("record", "--kind", "cpu", "--hold")
    assert status == 2
    assert "is for --kind lock" in words


def test_kind_that_is_not_recorded_is_refused_before_the_work() -> None:
    status, words = said("record", "--kind", "cpuu")
    assert status == 2
    assert words.startswith("Error: Invalid value for '--kind': 'cpuu' is not") and "'cpu'" in words


def test_output_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    missing = tmp_path / "absent" / "out"
    assert said("record", "-o", str(missing)) == (1, f"Error: cannot write to {missing}: No such file or directory")


def test_server_that_is_not_there() -> None:
    status, words = said("query", "cpu{}", "--server", "http://127.0.0.1:1")
    assert (status, words.partition(";")[0]) == (1, "Error: no answer from http://127.0.0.1:1: Connection refused")


def test_data_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "emberwatch.db")) as data:
        data.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        data.execute("INSERT INTO alembic_version VALUES ('9999')")
        data.commit()
    status, words = said("serve", "--data-dir", str(tmp_path), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
    assert status == 1
    assert words.startswith("Error: the data was written by a newer Emberwatch (schema 9999;")


def test_settings_of_another_user_that_lie_in_the_way_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "emberwatch.toml"
    file.write_text("[server]\nretention_days = 0\n")
    monkeypatch.chdir(tmp_path)
    assert "retention_days is 0" in said("serve")[1]
    file.chmod(0o666)
    status, words = said("serve")
    assert status == 1 and "--config emberwatch.toml" in words


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("server = 3", "server must be a table"),
        ("[server]\nnosuch = 3", "no such setting: nosuch"),
        ("garbage = [", "cannot read settings"),
        ("[server]\nretention_days = 0", "retention_days is 0: must be above 0"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "emberwatch.toml"
    file.write_text(text)
    status, words = said("serve", "--config", str(file))
    assert status == 1
    assert complaint in words
