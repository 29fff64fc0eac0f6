# SPDX-License-Identifier: Apache-2.0
"""Mounted file systems are found, whatever their place is called."""

from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.mounts import find_mount

MOUNTS = b"proc /proc proc rw 0 0\ntracefs /odd\\040place/tracing tracefs rw 0 0\n\nshort line\n"


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_bytes(MOUNTS)
    return path


def test_place_is_unescaped(mounts: Path) -> None:
    assert find_mount("tracefs", mounts) == Path("/odd place/tracing")
    assert find_mount("bpf", mounts) is None


def test_unreadable_list_of_mounts_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="nowhere"):
        find_mount("bpf", tmp_path / "nowhere")
