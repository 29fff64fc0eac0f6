# SPDX-License-Identifier: Apache-2.0
"""What needs no kernel of the on-CPU profiler: rates, and how a row is read. The rest is in tests/bpf/test_cpu.py."""

import logging
import struct

import numpy as np
import pytest

from agent.errors import KernelError
from agent.profilers.cpu import CpuProfiler, CpuSettings
from agent.records.drain import CPU_KEY


@pytest.mark.parametrize("rate_hz", [0, -1, 10_001])
def test_impossible_rate_is_refused_before_anything_is_loaded(rate_hz: int) -> None:
    with pytest.raises(KernelError, match="best 99 or 49"):
        CpuProfiler.start(CpuSettings(rate_hz=rate_hz))


@pytest.mark.parametrize(("rate_hz", "is_warned"), [(99, False), (49, False), (997, False), (50, True), (100, True), (250, True)])
def test_rate_in_lock_step_is_taken_with_a_warning(
    rate_hz: int, is_warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise KernelError("not in this test")

    monkeypatch.setattr("agent.profilers.cpu.Program.load", refuse)
    with caplog.at_level(logging.WARNING), pytest.raises(KernelError, match="not in this test"):
        CpuProfiler.start(CpuSettings(rate_hz=rate_hz))
    assert ("lock step" in caplog.text) is is_warned


@pytest.mark.parametrize(("written", "error"), [(-17, "EEXIST"), (-14, "EFAULT"), (-12, "ENOMEM")])
def test_error_of_a_stack_walk_is_read_with_its_sign(written: int, error: str) -> None:
    # start, user stack, kernel stack, pid, exec id, user error, kernel error, is kernel thread, comm
    row = struct.pack("<QQQIIhhI16s", 7, 0, 0, 23, 1, written, 0, 0, b"a;b\xff")
    key = np.frombuffer(row, CPU_KEY)[0]
    assert int(key["user_error"]) == written < 0, error
    assert (int(key["kernel_error"]), bytes(key["comm"])) == (0, b"a;b\xff")
