# SPDX-License-Identifier: Apache-2.0
"""One agent for each data directory."""

import os
from pathlib import Path

import pytest

from agent.errors import AgentError
from agent.runner.data_lock import DataLock


def test_a_second_agent_is_told_who_has_it(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    first = DataLock(data)
    with pytest.raises(AgentError, match=rf"another agent \(process {os.getpid()}\) uses {data}: stop it"):
        DataLock(data)
    first.release()
    DataLock(data).release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AgentError, match="--data-dir"):
        DataLock(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
