# SPDX-License-Identifier: Apache-2.0
"""Tasks that are done over and over in the background: each fails by itself, is due again, and is told of while it fails."""

import logging
from collections.abc import Callable, Mapping
from threading import Lock

from server.errors import ServerError

log = logging.getLogger(__name__)


class Upkeep:
    """Safe for several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._failing: dict[str, str] = {}
        self._failures = 0

    def attempt(self, name: str, task: Callable[[], None]) -> None:
        """Do a task. Whatever it raises is logged and kept until it succeeds: the thread that asks goes on with other tasks."""
        try:
            task()
        except ServerError as error:  # Nothing is lost: the same step is due again.
            log.warning("task put off task=%r reason=%s", name, error)
            self._note(name, str(error))
        except Exception as error:
            log.exception("task failed task=%r", name)
            self._note(name, f"{type(error).__name__}: {error}")
        else:
            with self._lock:
                self._failing.pop(name, None)

    def failing(self) -> Mapping[str, str]:
        """Tasks that failed the last time, and why."""
        with self._lock:
            return dict(self._failing)

    @property
    def failures(self) -> int:
        """How often any failed since the start."""
        return self._failures

    def _note(self, name: str, why: str) -> None:
        with self._lock:
            self._failing[name] = why
            self._failures += 1
