# SPDX-License-Identifier: Apache-2.0
"""Programs stay within the instruction budgets that bpf/README.md states."""

import os
import re
from contextlib import closing
from pathlib import Path

import pytest

from agent.kernel.headers import kernel_version
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings, Group
from agent.profilers.registry import GROUPS
from agent.profilers.suite import Suite
from tests.support.kernel import before_6_15

README = Path(__file__).resolve().parents[2] / "bpf/README.md"
# Rows such as: | `on_tick` | cpu | … | 5.10 | 410 | 500 |
ROW = re.compile(r"^\| `(\w+)` \|.*\| (\d+)\.(\d+)[^|]*\| [^|]+ \| (\d+) \|$", re.MULTILINE)


@pytest.mark.parametrize("groups", [GROUPS, tuple(map(before_6_15, GROUPS))], ids=["as here", "before 6.15"])
def test_programs_stay_within_their_budgets(header_directory: Path, groups: tuple[Group, ...]) -> None:
    rows = ROW.findall(README.read_text())
    budgets = {name: int(budget) for name, _, _, budget in rows}
    here = kernel_version(os.uname().release)
    version = (here.version, here.patch_level) if groups is GROUPS else (6, 14)
    older = {name for name, major, minor, _ in rows if (int(major), int(minor)) <= version}
    with closing(Suite.start(CpuSettings(header_directory=header_directory), EventSettings(), groups=groups)) as suite:
        assert suite.refusals == {}
        sizes = suite.cpu.instructions()
    assert older <= set(sizes) <= set(budgets)
    assert {name: size for name, size in sizes.items() if size > budgets[name]} == {}
