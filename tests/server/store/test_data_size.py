# SPDX-License-Identifier: Apache-2.0
"""The size that retention goes by is that of the tables, whatever is added, merged, rolled up or removed."""

import sqlalchemy as sa

from server.store.data_size import DATA, DataSize
from server.store.protocol import RetireLimits
from server.store.sql_store import SqlStore
from tests.support.pushes import MINUTE_NS, MINUTE_UNIX_NS, SECOND_NS, STACK, compact_all, push_rows

NO_LIMIT = RetireLimits(keep_s=0, keep_bytes=0, keep_level0_s=0, keep_push_keys_s=0)


def summed(store: SqlStore) -> int:
    with store._engine.connect() as connection:
        return sum(int(connection.execute(sa.select(sa.func.sum(table.c.size_bytes))).scalar() or 0) for table in DATA)


def test_size_follows_all_that_is_written(store: SqlStore) -> None:
    sizes = []

    def check() -> None:
        assert store._units.size.total() == summed(store)
        sizes.append(summed(store))

    for number in range(7):
        push_rows(store, [("web", "t", STACK, 7), ("db", "t", STACK, 23)], number + 1, MINUTE_UNIX_NS + number * 3 * MINUTE_NS)
    store.retire(NO_LIMIT, MINUTE_UNIX_NS)
    check()
    compact_all(store, MINUTE_UNIX_NS + 26 * 60 * MINUTE_NS)
    check()
    push_rows(store, [("web", "t", [*STACK, "app+0x99"], 7)], 99, MINUTE_UNIX_NS + SECOND_NS)  # late: into a block, and all longer ones
    compact_all(store, MINUTE_UNIX_NS + 26 * 60 * MINUTE_NS)
    check()
    for keep_bytes in (sizes[-1] - 1, 1):
        while not store.retire(
            RetireLimits(keep_s=0, keep_bytes=keep_bytes, keep_level0_s=3600), MINUTE_UNIX_NS + 26 * 60 * MINUTE_NS
        ).is_done:
            pass
        check()
    assert len(set(sizes)) == 5


def test_what_is_committed_before_the_count_is_not_in_it_twice(store: SqlStore) -> None:
    push_rows(store, [("web", "t", STACK, 7)], 1)
    assert store._units.size.total() == summed(store)
    store.retire(NO_LIMIT, MINUTE_UNIX_NS)
    push_rows(store, [("web", "t", STACK, 7)], 2)
    store.retire(NO_LIMIT, MINUTE_UNIX_NS)
    assert store._units.size.total() == summed(store)


def test_tables_are_added_up_once(store: SqlStore) -> None:
    push_rows(store, [("web", "t", STACK, 7)], 1)
    size, statements = DataSize(), list[str]()
    sa.event.listen(store._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    with store._engine.connect() as connection:
        for _ in range(3):
            size.count(connection)
    assert size.total() == summed(store)
    assert len([one for one in statements if "sum(" in one]) == 2 * len(DATA)
