# SPDX-License-Identifier: Apache-2.0
"""Mounted file systems are found, missing ones are mounted or the command is told. Nothing is mounted for real here."""

from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.mounts import BPFFS, TRACEFS, ensure_mounted, find_mount

MOUNTS = b"proc /proc proc rw 0 0\ntracefs /odd\\040place/tracing tracefs rw 0 0\n\nshort line\n"


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_bytes(MOUNTS)
    return path


def refuse(kind: str, target: str) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_place_is_unescaped(mounts: Path) -> None:
    assert find_mount("tracefs", mounts) == Path("/odd place/tracing")
    assert find_mount("bpf", mounts) is None


def test_what_is_mounted_is_left_alone(mounts: Path) -> None:
    outcome = ensure_mounted(TRACEFS, mounts, refuse)
    assert (outcome.place, outcome.is_ours, outcome.remedy) == (Path("/odd place/tracing"), False, "")


def test_what_is_missing_is_mounted_where_it_belongs(mounts: Path) -> None:
    calls: list[tuple[str, str]] = []
    outcome = ensure_mounted(BPFFS, mounts, lambda kind, target: calls.append((kind, target)))
    assert calls == [("bpf", "/sys/fs/bpf")]
    assert (outcome.place, outcome.is_ours) == (Path("/sys/fs/bpf"), True)


def test_refusal_says_what_to_type(mounts: Path) -> None:
    outcome = ensure_mounted(BPFFS, mounts, refuse)
    assert outcome.place is None
    assert outcome.remedy == "mount -t bpf bpf /sys/fs/bpf   (tried: Operation not permitted)"


def test_unreadable_list_of_mounts_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="nowhere"):
        find_mount("bpf", tmp_path / "nowhere")
