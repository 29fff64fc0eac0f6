# SPDX-License-Identifier: Apache-2.0
"""The few single values a store keeps beside its tables."""

import sqlalchemy as sa

from server.store import tables

LEVEL0_FLOOR = "level0_floor"
"""Before it, batches that are in a block may be gone and do not count."""
DATA_FLOOR = "data_floor"
"""Before it, data is being removed and does not count: a minute is there whole, or not at all."""

ACCOUNTS_BUILT = "accounts_built"
"""Before it, accounts are rolled up to units of ten minutes; a unit with a late window is marked until it is made anew."""
ACCOUNTS_FLOOR = "accounts_floor"
"""Before it, windows have no account of their own any more: units of ten minutes are the finest."""
ACCOUNTS_SEEN = "accounts_seen"
"""Row id up to which windows that came late have been marked; not above the highest, because SQLite gives ids of removed rows again."""


def read_bytes(connection: sa.Connection, name: str) -> bytes | None:
    """None when it was never written."""
    table = tables.store_facts.c
    value = connection.execute(sa.select(table.value).where(table.name == name)).scalar()
    return None if value is None else bytes(value)


def write_bytes(connection: sa.Connection, name: str, value: bytes) -> None:
    """In the place of what was there."""
    table = tables.store_facts
    connection.execute(table.delete().where(table.c.name == name))
    connection.execute(table.insert().values(name=name, value=value))


def read_time(connection: sa.Connection, name: str) -> int:
    """Unix nanoseconds; 0 when it was never written."""
    return int.from_bytes(read_bytes(connection, name) or b"", "little")


def write_time(connection: sa.Connection, name: str, unix_ns: int) -> None:
    """In the place of what was there, earlier or later."""
    write_bytes(connection, name, unix_ns.to_bytes(8, "little"))


def raise_time(connection: sa.Connection, name: str, unix_ns: int) -> int:
    """Move a time forward, never back; gives where it is now."""
    before = read_time(connection, name)
    if unix_ns > before:
        write_time(connection, name, unix_ns)
    return max(before, unix_ns)
