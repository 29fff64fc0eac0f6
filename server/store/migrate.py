# SPDX-License-Identifier: Apache-2.0
"""Brings the database to this version's schema with Alembic, all in one transaction: a kill in between leaves what was there."""

import importlib.resources
import logging
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from server.errors import SchemaTooNew
from server.store.engine import open_engine, writing

log = logging.getLogger(__name__)


def migrate(url: str | sa.URL, revision: str = "head") -> str:
    """Bring the database at `url` to `revision` (up, or down to an older one); gives the revision it has then.

    Makes the database when there is none. Raises SchemaTooNew when a newer server has written it, Overloaded when it is locked.
    """
    engine = open_engine(url)
    try:
        with writing(engine) as connection:
            return _migrate(connection, revision)
    finally:
        engine.dispose()


def known_revisions() -> list[str]:
    """All revisions this version knows, oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]


def _migrate(connection: sa.Connection, revision: str) -> str:
    config = _config()
    config.attributes["connection"] = connection
    known = known_revisions()
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise SchemaTooNew(
            f"the data was written by a newer Emberwatch (schema {current}; this one knows {known[-1]} and older): "
            "install that version or a later one, or use another data directory"
        )
    target = known[-1] if revision == "head" else revision
    if current == target:
        return target
    if target == "base" or (current is not None and known.index(target) < known.index(current)):
        command.downgrade(config, target)
    else:
        command.upgrade(config, target)
    log.info("schema migrated from=%s to=%s", current or "none", target)
    return target


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(str(importlib.resources.files("server.migrations")))).replace("%", "%%"))
    return config
