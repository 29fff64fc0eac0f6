# SPDX-License-Identifier: Apache-2.0
"""Idle time is read per CPU, waiting for I/O included."""

from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.profilers.idle_time import parse_idle_ns, read_idle_ns

STAT = b"cpu  9 9 9 999 99 0 0 0 0 0\ncpu0 1 2 3 700 23 4 5 6 7 8\ncpu3 1 2 3 11 0 4 5 6 7 8\nintr 1 2 3\ncpu9 1 1 1 1 1 1\n"


def test_idle_and_io_wait_add_up_for_each_online_cpu() -> None:
    assert parse_idle_ns(STAT, ticks_per_s=100) == {0: 7_230_000_000, 3: 110_000_000}


def test_empty_and_cut_off_text_yield_nothing() -> None:
    assert parse_idle_ns(b"", 100) == {}
    assert parse_idle_ns(b"cpu0 1 2", 100) == {}


def test_this_host_was_idle_at_some_time() -> None:
    assert all(idle_ns > 0 for idle_ns in read_idle_ns().values())


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="nowhere"):
        read_idle_ns(tmp_path / "nowhere")
