# SPDX-License-Identifier: Apache-2.0
"""What is said of deploys, one text for each (service, version); bounded in number."""

import hashlib
import json

import sqlalchemy as sa

from server.errors import LimitExceeded
from server.store import tables
from server.store.protocol import DeployNote

MOST_NOTES = 10_000


def read(connection: sa.Connection) -> list[DeployNote]:
    """See Store.deploy_notes."""
    table = tables.deploy_notes.c
    rows = connection.execute(sa.select(table.service, table.version, table.text).order_by(table.id).limit(MOST_NOTES))
    return [DeployNote(service, version, text) for service, version, text in rows]


def write(connection: sa.Connection, note: DeployNote, now_unix_ns: int) -> None:
    """See Store.note_deploy."""
    table = tables.deploy_notes
    key = _key(note)
    connection.execute(table.delete().where(table.c.key_hash == key))
    if not note.text:
        return
    if (connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() or 0) >= MOST_NOTES:
        raise LimitExceeded(f"there are {MOST_NOTES} notes on deploys already: remove some by writing empty ones")
    values = {"key_hash": key, "service": note.service, "version": note.version, "text": note.text, "written_unix_ns": now_unix_ns}
    connection.execute(table.insert().values(values))


def _key(note: DeployNote) -> bytes:
    return hashlib.blake2b(json.dumps([note.service, note.version]).encode(), digest_size=16).digest()
