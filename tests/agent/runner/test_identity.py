# SPDX-License-Identifier: Apache-2.0
"""Who the agent is survives a restart, and does not survive a cloned disk."""

from pathlib import Path

import pytest

from agent.errors import AgentError
from agent.runner.identity import agent_id


def test_id_stays_with_its_machine(tmp_path: Path) -> None:
    first = agent_id(tmp_path / "data", "machine-a")
    assert len(first) == 16
    assert agent_id(tmp_path / "data", "machine-a") == first


def test_cloned_disk_gets_another_id(tmp_path: Path) -> None:
    first = agent_id(tmp_path, "machine-a")
    second = agent_id(tmp_path, "machine-b")
    assert second != first
    assert agent_id(tmp_path, "machine-b") == second


@pytest.mark.parametrize("damage", [b"", b"not a uuid\n", b"\xff\xfe", b"1234\n\n"])
def test_damaged_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "agent-id").write_bytes(damage)
    first = agent_id(tmp_path, "machine-a")
    assert agent_id(tmp_path, "machine-a") == first


def test_folder_that_cannot_be_made_is_said_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AgentError, match="--data-dir"):
        agent_id(tmp_path / "file" / "data", "machine-a")
