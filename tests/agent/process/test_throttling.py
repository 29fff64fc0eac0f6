# SPDX-License-Identifier: Apache-2.0
"""Throttled time of cgroups goes to processes, once each, from files as the kernel writes them."""

from pathlib import Path

import numpy as np
import pytest

from agent.process.throttling import Throttling
from agent.records.process import ProcessKey

WEB, DB, SMALL = ProcessKey(7, 893_830_000_000, 1), ProcessKey(8, 893_830_000_000, 1), ProcessKey(9, 893_830_000_000, 1)
MS = 1_000_000
# pid (comm) state ppid pgrp session tty tpgid flags ... starttime, as in test_start.py
STAT = b"%d (x) S 1 2 3 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 89383 3133440 407 184467 4096 8192 12288 0 0\n"


class Host:
    """A /proc and a /sys/fs/cgroup."""

    def __init__(self, root: Path) -> None:
        self.proc, self.cgroups = root / "proc", root / "cgroup"
        self.throttling = Throttling(self.proc, self.cgroups)

    def process(self, key: ProcessKey, cgroup: bytes) -> None:
        folder = self.proc / str(key.pid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stat").write_bytes(STAT % key.pid)
        (folder / "cgroup").write_bytes(cgroup)

    def cpu_stat(self, folder: str, text: str) -> None:
        (self.cgroups / folder).mkdir(parents=True, exist_ok=True)
        (self.cgroups / folder / "cpu.stat").write_text(text)

    def throttled(self, folder: str, microseconds: int) -> None:
        self.cpu_stat(folder, f"usage_usec 23\nuser_usec 7\nsystem_usec 3\nnr_periods 9\nnr_throttled 2\nthrottled_usec {microseconds}\n")

    def since_last(self, **runnable_ns: int) -> dict[str, int]:
        keys = [{"web": WEB, "db": DB, "small": SMALL}[name] for name in runnable_ns]
        found = self.throttling.since_last(keys, np.array(list(runnable_ns.values()), np.uint64))
        return dict(zip(runnable_ns, found.tolist(), strict=True))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.process(WEB, b"0::/pods/web\n")
    made.process(DB, b"0::/pods/db\n")
    made.process(SMALL, b"0::/pods/web\n")
    for folder in ("pods", "pods/web", "pods/db"):
        made.throttled(folder, 1_000_000)
    return made


def test_what_was_before_the_first_window_does_not_count(host: Host) -> None:
    assert host.since_last(web=3, db=7) == {"web": 0, "db": 0}


def test_each_cgroup_goes_once_to_who_was_runnable_longest(host: Host) -> None:
    host.since_last(web=1, db=1, small=1)
    host.throttled("pods/web", 1_003_000)
    host.throttled("pods/db", 1_000_700)
    host.throttled("pods", 1_000_020)
    assert host.since_last(small=5, db=23, web=7) == {"small": 0, "db": 720_000, "web": 3 * MS}
    assert host.since_last(small=5, db=23, web=7) == {"small": 0, "db": 0, "web": 0}


def test_nobody_runnable_reads_nothing_and_loses_nothing(host: Host) -> None:
    host.since_last(web=1)
    host.throttled("pods/web", 1_003_000)
    assert host.since_last(web=0, db=0) == {"web": 0, "db": 0}
    assert host.since_last(web=1) == {"web": 3 * MS}


def test_a_cgroup_that_began_again_counts_from_there(host: Host) -> None:
    host.since_last(web=1)
    host.throttled("pods/web", 5)
    assert host.since_last(web=1) == {"web": 0}
    host.throttled("pods/web", 7)
    assert host.since_last(web=1) == {"web": 2000}


def test_version_1_counts_nanoseconds_in_the_hierarchy_of_cpu(host: Host) -> None:
    host.process(WEB, b"4:memory:/m\n3:cpu,cpuacct:/docker/web\n0::/\n")
    host.cpu_stat("cpu/docker/web", "nr_periods 7\nnr_throttled 3\nthrottled_time 23\n")
    host.since_last(web=1)
    host.cpu_stat("cpu/docker/web", "nr_periods 9\nnr_throttled 5\nthrottled_time 7000023\n")
    assert host.since_last(web=1) == {"web": 7 * MS}


@pytest.mark.parametrize("cgroup", [b"", b"0::/\n", b"0::/../elsewhere\n", b"0::/gone\n", b"0::/no quota\n", b"0::/torn\n", b"0::/\xff\n"])
def test_what_is_not_told_is_none(host: Host, cgroup: bytes) -> None:
    host.process(WEB, cgroup)
    host.cpu_stat("no quota", "usage_usec 23\n")
    host.cpu_stat("torn", "nr_periods 7\nthrottled_usec")
    host.cpu_stat("../elsewhere", "throttled_usec 7")
    for _ in range(2):
        assert host.since_last(web=1) == {"web": 0}


def test_another_process_of_the_same_pid_and_one_that_is_gone_have_none(host: Host) -> None:
    other, gone = ProcessKey(7, 993_830_000_000, 1), ProcessKey(10, 1, 1)
    ones = np.ones(2, np.uint64)
    host.throttling.since_last([other, gone], ones)
    host.throttled("pods/web", 1_003_000)
    assert host.throttling.since_last([other, gone], ones).tolist() == [0, 0]


def test_a_process_that_was_moved_is_found_again(host: Host) -> None:
    host.since_last(web=1, db=1)
    host.process(WEB, b"0::/pods/db\n")
    for at in range(1, 40):
        host.throttled("pods/db", 1_000_000 + at)
        moved = host.since_last(web=1)["web"]
    assert moved == 1000
