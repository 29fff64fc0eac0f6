# SPDX-License-Identifier: Apache-2.0
"""The agent's commands: what keeps it from starting is one sentence and status 1, never a traceback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli.main import main
from tests.support.kernel import lacking_for_bpf

RUN = [sys.executable, "-m", "agent.cli", "run", "--server", "127.0.0.1:1"]


def test_setting_that_makes_no_sense_is_named() -> None:
    done = CliRunner().invoke(main, ["run", "--rate-hz", "0"])
    assert (done.exit_code, done.output) == (1, "Error: rate_hz is 0: must be from 1 to 10000\n")


def test_python_that_this_user_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    done = CliRunner().invoke(main, ["run"])
    assert (done.exit_code, done.output) == (1, "Error: this user cannot run /nonexistent/python: No such file or directory\n")


@pytest.mark.parametrize("text", ["agent = 3", "[agent]\nnosuch = 3", "garbage = [", b"\xff"])
def test_file_of_settings_that_makes_no_sense(tmp_path: Path, text: str | bytes) -> None:
    file = tmp_path / "emberwatch.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = CliRunner().invoke(main, ["run", "--config", str(file)])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert str(file) in done.output


def test_settings_of_another_user_that_lie_in_the_way_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "emberwatch.toml"
    file.write_text("[agent]\nrate_hz = 0\n")
    monkeypatch.chdir(tmp_path)
    assert "rate_hz is 0" in CliRunner().invoke(main, ["run"]).output
    file.chmod(0o666)
    done = CliRunner().invoke(main, ["run"])
    assert (done.exit_code, done.output.count("--config emberwatch.toml")) == (1, 1)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv to take rights away")
def test_without_rights_it_says_which_ones(tmp_path: Path) -> None:
    stripped = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    done = subprocess.run([*stripped, *RUN, "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "emberwatch-agent: bpf(2) is not permitted: run as root or with CAP_BPF and CAP_PERFMON\n"


@pytest.mark.skipif(bool(lacking_for_bpf()), reason=f"BPF: {lacking_for_bpf()}")
def test_process_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, "--data-dir", str(tmp_path), "--pid", "99999999"], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (1, "emberwatch-agent: there is no process 99999999 to profile\n")
