# SPDX-License-Identifier: Apache-2.0
"""A cgroup is found by the number the kernel gives it."""

import os
from pathlib import Path

import pytest

from agent.process.cgroup_path import PLACES, CgroupPaths

ROOT = next((place for place in PLACES if (place / "cgroup.controllers").exists()), None)


@pytest.mark.skipif(ROOT is None or os.geteuid() != 0, reason="needs root and cgroup v2")
def test_the_path_of_a_cgroup_and_of_one_that_is_gone() -> None:
    assert ROOT is not None
    group = ROOT / f"emberwatch-path-{os.getpid()}"
    group.mkdir()
    try:
        number = group.stat().st_ino
        assert CgroupPaths().path(number) == f"/{group.name}".encode()
    finally:
        group.rmdir()
    assert CgroupPaths().path(number) == b""
    assert CgroupPaths().path(ROOT.stat().st_ino) == b"/"


def test_without_the_unified_hierarchy_nothing_is_known(tmp_path: Path) -> None:
    assert CgroupPaths((tmp_path,)).path(1) == b""
