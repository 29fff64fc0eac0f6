# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as the kernel writes them."""

from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.perf_event import online_cpus, parse_cpu_list, possible_cpu_count


@pytest.mark.parametrize(("text", "cpus"), [("0\n", {0}), ("0-3,7\n", {0, 1, 2, 3, 7}), ("2,4-5", {2, 4, 5})])
def test_ranges_and_single_cpus_are_read(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["", "a-b", "1,,2"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(KernelError, match="no list of CPUs"):
        parse_cpu_list(text)


def test_holes_count_as_possible(tmp_path: Path) -> None:
    (tmp_path / "possible").write_text("0-1,6-7\n")
    assert possible_cpu_count(tmp_path / "possible") == 8


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="online"):
        online_cpus(tmp_path / "online")
