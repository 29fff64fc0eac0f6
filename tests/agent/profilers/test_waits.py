# SPDX-License-Identifier: Apache-2.0
"""What the profiler of waits asks of the host before it starts; the rest is in tests/bpf/test_waits.py, on the real kernel."""

from pathlib import Path

from agent.profilers.waits import LEAST_THREADS, THREADS_ROOM, page_levels, sees_all_threads, thread_count


def test_threads_stand_behind_the_slash_of_the_load(tmp_path: Path) -> None:
    loadavg = tmp_path / "loadavg"
    loadavg.write_text("0.20 0.18 0.12 1/10423 11206\n")
    assert thread_count(loadavg) == 10423


def test_host_that_does_not_say_has_as_many_threads_as_the_map_holds_at_least(tmp_path: Path) -> None:
    loadavg = tmp_path / "loadavg"
    assert thread_count(loadavg) == LEAST_THREADS // THREADS_ROOM
    loadavg.write_text("0.20 0.18 0.12")
    assert thread_count(loadavg) == LEAST_THREADS // THREADS_ROOM


def test_threads_of_other_namespaces_are_not_taken_for_gone(tmp_path: Path) -> None:
    (tmp_path / "pid").touch()  # another inode than that of the first namespace
    assert not sees_all_threads(tmp_path / "pid")
    assert not sees_all_threads(tmp_path / "missing")


def test_page_tables_have_the_levels_that_the_kernel_uses(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu la57x lm\n\nprocessor\t: 1\nflags\t\t: fpu la57x lm\n")
    assert page_levels(cpuinfo) == 4
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu la57 lm\n")
    assert page_levels(cpuinfo) == 5
    assert page_levels(tmp_path / "none") == 4
