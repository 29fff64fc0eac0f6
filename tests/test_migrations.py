# SPDX-License-Identifier: Apache-2.0
"""Migrations: up, down and up again, equal to the tables of the store, refused when newer, whole when interrupted."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from server.errors import SchemaTooNew
from server.store.engine import open_engine, writing
from server.store.migrate import known_revisions, migrate
from server.store.tables import metadata


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def table_names(url: str) -> set[str]:
    engine = open_engine(url)
    try:
        return set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_every_revision_goes_up_down_and_up(url: str) -> None:
    assert migrate(url) == known_revisions()[-1]
    whole = table_names(url)
    for revision in [*known_revisions()[-2::-1], "base"]:
        migrate(url, revision)
    assert table_names(url) == {"alembic_version"}
    for revision in known_revisions():
        assert migrate(url, revision) == revision
    assert table_names(url) == whole == {*metadata.tables, "alembic_version"}


def test_migrated_schema_is_the_one_of_the_tables(url: str) -> None:
    migrate(url)
    engine = open_engine(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata) == []
    engine.dispose()


def test_every_constraint_has_a_name(url: str) -> None:
    migrate(url)
    engine = open_engine(url)
    inspector = sa.inspect(engine)
    for table in metadata.tables:
        constraints = [inspector.get_pk_constraint(table), *inspector.get_foreign_keys(table), *inspector.get_unique_constraints(table)]
        assert all(constraint["name"] for constraint in constraints), table
    engine.dispose()


def test_migrating_twice_changes_nothing(url: str) -> None:
    assert migrate(url) == migrate(url)


def test_newer_schema_is_refused_in_words_and_left_alone(url: str) -> None:
    migrate(url)
    engine = open_engine(url)
    with writing(engine) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match=r"newer Emberwatch \(schema 9999; this one knows \d{4} and older\): install"):
        migrate(url)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"
    engine.dispose()


def test_migration_that_breaks_half_way_leaves_nothing_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr("alembic.op.create_index", fail)  # tables are made before it
    with pytest.raises(RuntimeError, match="killed here"):
        migrate(url)
    assert table_names(url) == set()
    monkeypatch.undo()
    migrate(url)
    assert table_names(url) == {*metadata.tables, "alembic_version"}
