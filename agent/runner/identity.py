# SPDX-License-Identifier: Apache-2.0
"""Who this agent is: a UUID kept together with the machine's id, so that a cloned disk does not make two hosts one."""

import uuid
from pathlib import Path

from agent.errors import AgentError

_FILE = "agent-id"


def agent_id(data_dir: Path, machine_id: str) -> bytes:
    """The 16 bytes of this agent's UUID: read from `data_dir`, or made and kept there when absent, unreadable or of another machine.

    Raises AgentError when it can be neither read nor kept.
    """
    path = data_dir / _FILE
    kept = _read(path)
    if kept is not None and kept[1] == machine_id:
        return kept[0].bytes
    fresh = uuid.uuid4()
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{fresh}\n{machine_id}\n")
    except OSError as error:
        raise AgentError(f"cannot keep the agent's id in {path}: {error.strerror}; choose another folder with --data-dir") from error
    return fresh.bytes


def read_machine_id(path: Path = Path("/etc/machine-id")) -> str:
    """The machine's id, or "" when the system has none."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _read(path: Path) -> tuple[uuid.UUID, str] | None:
    try:
        lines = path.read_text().splitlines()
        return uuid.UUID(lines[0]), lines[1] if len(lines) > 1 else ""
    except (OSError, ValueError, IndexError):
        return None
