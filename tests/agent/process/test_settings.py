# SPDX-License-Identifier: Apache-2.0
"""More processes than there is room or budget for: they live on, and are not said to be gone."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from agent.process.settings import ProcessSettings, process_count, settings_for
from agent.process.table import ProcessTable
from tests.support.processes import key_of, python

WAIT = "print('ready'); import signal; signal.pause()"


def test_one_that_lives_and_finds_no_room_or_budget_is_unread_and_has_not_exited() -> None:
    for bound in ({"processes_max": 1}, {"new_burst": 1, "new_per_s": 0}):
        found = ProcessTable(replace(ProcessSettings(), **bound))
        with python(WAIT) as first, python(WAIT) as second:
            keys = key_of(first), key_of(second)
            found.see(keys[:1])
            found.see(keys[1:])
            services = sorted(found.get(key).service for key in keys)
        found.close()
        assert services[0] == b"[unread]" != services[1]


def test_room_for_processes_is_twice_what_runs_within_bounds() -> None:
    assert [settings_for(count).processes_max for count in (100, 5000, 100_000)] == [2048, 10_000, 16_384]
    assert process_count() >= 1


def test_one_that_waits_to_be_reaped_has_exited() -> None:
    found = ProcessTable(replace(ProcessSettings(), new_burst=0, new_per_s=0))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        key = key_of(child.pid)
        assert found.get(key).service == b"[unread]"
        assert child.stdin
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert found.get(key).service == b"[exited]"
    found.close()


def test_one_whose_main_thread_alone_has_ended_has_not_exited() -> None:
    program = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); ctypes.CDLL(None).syscall(60, 0)"
    found = ProcessTable(replace(ProcessSettings(), new_burst=0, new_per_s=0))
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        key = key_of(child.pid)
        until = time.monotonic() + 60
        while ") Z " not in Path(f"/proc/{child.pid}/stat").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        assert found.get(key).service == b"[unread]"
        child.kill()
        child.wait()
        assert found.get(key).service == b"[exited]"
    found.close()
