# SPDX-License-Identifier: Apache-2.0
"""One writing transaction and what has to follow in memory: memory shows what the disk holds, whether it commits or not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import sqlalchemy as sa

from server.errors import Overloaded
from server.store.data_size import DataSize
from server.store.engine import writing

QUEUE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Unit:
    """`on_commit` runs in order once all is durable, `on_rollback` in reverse order when nothing was kept."""

    connection: sa.Connection
    size: DataSize = field(default_factory=DataSize)
    on_commit: list[Callable[[], None]] = field(default_factory=list)
    on_rollback: list[Callable[[], None]] = field(default_factory=list)

    def grow(self, size_bytes: int) -> None:
        """Note how many bytes of profiles were added; below 0 for what was removed."""
        self.on_commit.append(partial(self.size.add, size_bytes))


class UnitOfWork:
    """Lets one writer in at a time; the others wait for a bounded time."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._publishing = Lock()
        self.size = DataSize()

    def wait_published(self) -> None:
        """Come back when memory shows all that the disk showed at the call: what was read from it can be looked up."""
        with self._publishing:
            pass

    @contextmanager
    def begin(self) -> Iterator[Unit]:
        """A unit that is durable when the block was left without an exception. Raises Overloaded when it was not let in in time."""
        if not self._lock.acquire(timeout=QUEUE_TIMEOUT_S):
            raise Overloaded(f"waited {QUEUE_TIMEOUT_S:.0f} s for others to finish writing")
        try:
            yield from self._run()
        finally:
            self._lock.release()

    def _run(self) -> Iterator[Unit]:
        undo: list[Callable[[], None]] = []
        with ExitStack() as held:
            try:
                with writing(self._engine) as connection:
                    unit = Unit(connection, self.size, on_rollback=undo)
                    yield unit
                    held.enter_context(self._publishing)
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
            for step in unit.on_commit:
                step()
