# SPDX-License-Identifier: Apache-2.0
"""Windows get what quotas and the hypervisor withheld, of a /proc/stat as the kernel writes it."""

from pathlib import Path

import numpy as np
import pytest

from agent.process.throttling import Throttling
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, WindowDrain, event_keys
from agent.runner.withheld_cpu import WithheldCpu
from emberwatch.v1 import batch_pb2 as pb
from tests.support.drains import DrainOf

CPU_NS = [4_000_000_000, 1_000_000_000]


def _write(stat: Path, *, user: int, steal: int) -> None:
    """Times nobody was on a CPU (idle, iowait) and of guests, which are part of user, differ much on purpose."""
    stat.write_text(f"cpu  {user} 10 20 {user * 9} 99 3 7 {steal} {user} 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 7\n")


def _window() -> WindowDrain:
    keys = event_keys(2)
    keys["pid"] = (7, 8)
    names = {"switches": [1, 1], "cpu_ns": CPU_NS, "runnable_ns": [3, 3]}
    columns = tuple(EventColumn(name, "ns", pb.MERGE_SUM, np.array(values, np.uint64)) for name, values in names.items())
    time = EventDrain("time", 0, 1, keys, columns, EventAccount(2, 0))
    other = EventDrain("lock", 0, 1, keys, columns[:1], EventAccount(2, 0))
    return WindowDrain(DrainOf().drain(), [other, time])


def _columns(window: WindowDrain) -> dict[str, list[int]]:
    return {column.name: column.values.tolist() for column in window.events[1].columns}


def _withheld(tmp_path: Path, stat: Path) -> WithheldCpu:
    return WithheldCpu(Throttling(tmp_path / "none", tmp_path / "none"), stat)


def test_steal_goes_to_processes_by_their_time_on_cpus(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    _write(stat, user=1000, steal=70)
    withheld = _withheld(tmp_path, stat)
    _write(stat, user=1750, steal=320)
    window = _window()
    added = withheld.add(window)
    assert _columns(added)["steal_ns"] == [1_000_000_000, 250_000_000]
    assert _columns(added)["throttled_ns"] == [0, 0]
    assert added.events[0] is window.events[0]
    assert _columns(withheld.add(_window()))["steal_ns"] == [0, 0]


@pytest.mark.parametrize("text", ["", "cpu\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n", None])
def test_a_host_that_does_not_tell_has_no_steal(tmp_path: Path, text: str | None) -> None:
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    withheld = _withheld(tmp_path, stat)
    assert _columns(withheld.add(_window()))["steal_ns"] == [0, 0]
    _write(stat, user=1000, steal=70)
    assert _columns(withheld.add(_window()))["steal_ns"] == [0, 0]


def test_steal_that_runs_backwards_is_none(tmp_path: Path) -> None:
    """Hypervisors do that when they move a guest."""
    stat = tmp_path / "stat"
    _write(stat, user=1000, steal=70)
    withheld = _withheld(tmp_path, stat)
    _write(stat, user=2000, steal=60)
    assert _columns(withheld.add(_window()))["steal_ns"] == [0, 0]


def test_throttled_time_is_that_of_the_process(tmp_path: Path) -> None:
    class Told(Throttling):
        def since_last(self, keys, runnable_ns):  # type: ignore[no-untyped-def]
            assert [key.pid for key in keys] == [7, 8]
            assert runnable_ns.tolist() == [3, 0], "kernel threads have no quota"
            return np.array([23, 0], np.uint64)

    window = _window()
    window.events[1].keys["is_kernel_thread"] = (0, 1)
    added = WithheldCpu(Told(tmp_path, tmp_path), tmp_path / "stat").add(window)
    assert _columns(added)["throttled_ns"] == [23, 0]
