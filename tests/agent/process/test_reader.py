# SPDX-License-Identifier: Apache-2.0
"""Tests of the reader of one process, through the table that owns it; most of what it does is tested in test_table.py."""

import os

import pytest

from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.records.process import Fate, MappingKind, ProcessKey
from tests.support.processes import key_of


def test_the_vdso_can_be_uploaded() -> None:
    found = ProcessTable(ProcessSettings())
    key = key_of(os.getpid())
    found.see([key])
    binary = next((m.binary for m in found.get(key).mappings if m.kind is MappingKind.VDSO), None)
    if binary is None:
        pytest.skip("no vDSO is mapped, or /proc/self/mem cannot be read")
    fd = found.open_binary(binary.id)
    assert fd is not None
    assert os.fstat(fd).st_size == binary.size_bytes
    assert os.pread(fd, 4, 0) == b"\x7fELF"
    os.close(fd)
    found.close()


def test_the_idle_task_is_no_process() -> None:
    """PID 0 has no folder in /proc; nothing is ever filed under the name swapper."""
    found = ProcessTable(ProcessSettings())
    key = ProcessKey(0, 0, 0)
    found.see([key])
    assert (found.get(key).fate, found.get(key).service) == (Fate.EXITED, b"[exited]")
    found.close()
