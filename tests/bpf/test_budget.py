# SPDX-License-Identifier: Apache-2.0
"""Programs stay within the instruction budgets that bpf/README.md states."""

import re
from contextlib import closing
from pathlib import Path

from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite

README = Path(__file__).resolve().parents[2] / "bpf/README.md"


def test_programs_stay_within_their_budgets(header_directory: Path) -> None:
    # Rows such as: | `on_tick` | cpu | … | 500 |
    budgets = {name: int(budget) for name, budget in re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", README.read_text(), re.MULTILINE)}
    with closing(Suite.start(CpuSettings(header_directory=header_directory), EventSettings())) as suite:
        sizes = suite.cpu.instructions()
    assert set(budgets) == set(sizes)
    assert {name: size for name, size in sizes.items() if size > budgets[name]} == {}
