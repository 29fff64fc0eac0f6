# SPDX-License-Identifier: Apache-2.0
"""Tests of the jail that children read hostile files in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_the_child_is_nobody_and_can_open_nothing(tmp_path: Path) -> None:
    report = tmp_path / "report"
    script = (
        "import os, sys; from agent.jail import JailLimits, enter_jail\n"
        "fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "enter_jail(65534, 65534, JailLimits(1 << 30, 5, 1000))\n"
        "try: os.open('/etc/passwd', os.O_RDONLY); opened = 'opened'\n"
        "except OSError: opened = 'refused'\n"
        "try: os.fork(); forked = 'forked'\n"
        "except OSError: forked = 'refused'\n"
        "os.write(fd, f'{os.getresuid()} {os.getgroups()} {opened} {forked}'.encode())\n"
    )
    subprocess.run([sys.executable, "-I", "-c", script, str(report)], check=True)
    assert report.read_text() == "(65534, 65534, 65534) [] refused refused"
