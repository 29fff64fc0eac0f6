# SPDX-License-Identifier: Apache-2.0
"""The doctor says the truth of this host, and its exit status follows from it."""

import json
import subprocess
import sys

import pytest

from tests.support.kernel import lacking_for_bpf


def doctor(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "agent.cli", "doctor", *arguments], check=False, capture_output=True, text=True, timeout=300
    )


@pytest.mark.skipif(bool(lacking_for_bpf()), reason=f"BPF: {lacking_for_bpf()}")
def test_doctor_finds_on_cpu_working_here() -> None:
    done = doctor("--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["works"], done.stderr) == (0, True, "")
    assert {each["name"] for each in said["collectors"]} >= {"cpu"}
    assert all(each["detail"] for each in said["host"])
    assert {each["name"] for each in said["host"]} >= {"unwinding", "unwind tables"}


AS_NOBODY = """
import os
from agent.cli.doctor import report
os.setgid(65534)
os.setuid(65534)
works, text = report(False)
print(works)
print(text)
"""


def test_doctor_without_rights_says_what_is_missing_and_the_remedy() -> None:
    done = subprocess.run([sys.executable, "-c", AS_NOBODY], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("False\n"), done.stderr
    assert "missing  cpu\n" in done.stdout
    assert "->" in done.stdout
    assert "Traceback" not in done.stderr
