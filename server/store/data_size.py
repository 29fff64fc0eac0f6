# SPDX-License-Identifier: Apache-2.0
"""How many bytes of profiles a store holds: counted once after a start, kept up from then on.

Adding up a column reads its whole table, blobs and all: 1 s for 605 MB, and a minute for what a store holds by default.
"""

from threading import Lock

import sqlalchemy as sa

from server.store import tables

DATA = (tables.batches, tables.blocks, tables.rollups)


class DataSize:
    """Thread safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._grown = 0
        self._counted: int | None = None

    def add(self, size_bytes: int) -> None:
        """Note what a transaction that was committed added, or took away."""
        with self._lock:
            self._grown += size_bytes

    def count(self, connection: sa.Connection) -> None:
        """Count what is there, if that was not done yet; may take long, so never while others wait to write.

        What is committed while the transaction of `connection` begins may count twice, until the next start: some windows at most.
        """
        if self._counted is not None:
            return
        with self._lock:
            before = self._grown
        sizes = [connection.execute(sa.select(sa.func.sum(table.c.size_bytes))).scalar() or 0 for table in DATA]
        with self._lock:
            self._counted = int(sum(sizes)) - before

    def total(self) -> int:
        """Bytes of all blobs of batches, blocks and rollups. `count` must have run."""
        with self._lock:
            return (self._counted or 0) + self._grown
