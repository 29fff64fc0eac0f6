# SPDX-License-Identifier: Apache-2.0
"""Keeps a second agent out of a data directory: two would share one id and one spool, and every sample would be stored twice."""

import contextlib
import fcntl
import os
from pathlib import Path

from agent.errors import AgentError


class DataLock:
    """Held for as long as this process lives or until `release`."""

    def __init__(self, directory: Path) -> None:
        """Make the directory when it is not there. Raises AgentError when another agent has it, or it cannot be written to."""
        path = directory / "lock"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise AgentError(f"cannot write to {path}: {error.strerror}; choose another folder with --data-dir") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise AgentError(
                f"another agent (process {holder}) uses {directory}: stop it, or choose another folder with --data-dir"
            ) from error
        with contextlib.suppress(OSError):  # On a full disk only the number is missing in what another agent would say.
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in."""
        os.close(self._descriptor)
