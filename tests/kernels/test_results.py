# SPDX-License-Identifier: Apache-2.0
"""What pytest and the probe leave behind is read as it is, and what is missing is missing."""

from pathlib import Path

import pytest

from tests.kernels.errors import MatrixError
from tests.kernels.results import Outcome, Probe, TestOutcome, parse_outcomes, read_outcomes, read_probe

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="tests.bpf.test_cpu" name="test_one[a-b]" time="7.1"/>
<testcase classname="tests.bpf.test_cpu" name="test_two"><skipped type="pytest.skip" message="needs cgroup v2">x.py:3</skipped></testcase>
<testcase classname="tests.bpf.test_cpu" name="test_three"><failure message="assert 2 == 3&#10;more">trace</failure></testcase>
<testcase classname="tests.bpf.test_cpu" name="test_three"/>
<testcase classname="tests.bpf.test_unwind" name="test_four"><error message="failed on setup">trace</error></testcase>
</testsuite></testsuites>
"""


def test_outcomes_are_told_apart() -> None:
    assert parse_outcomes(JUNIT) == {
        "tests/bpf/test_cpu.py::test_one[a-b]": TestOutcome(Outcome.PASSED),
        "tests/bpf/test_cpu.py::test_two": TestOutcome(Outcome.SKIPPED, "needs cgroup v2"),
        "tests/bpf/test_cpu.py::test_three": TestOutcome(Outcome.FAILED, "assert 2 == 3"),
        "tests/bpf/test_unwind.py::test_four": TestOutcome(Outcome.FAILED, "failed on setup"),
    }


def test_file_that_is_cut_is_an_error() -> None:
    with pytest.raises(MatrixError, match="read the results of pytest"):
        parse_outcomes(JUNIT[:300])


def test_nothing_left_behind_is_nothing(tmp_path: Path) -> None:
    assert read_outcomes(tmp_path / "tests.xml") == {}
    assert read_probe(tmp_path / "probe.json") is None


def test_probe_is_read(tmp_path: Path) -> None:
    text = '{"release": "6.1.0-57-amd64", "build": "#1", "collectors": {"cpu": "works"}, "findings": ["a: b"], "unwinding_denial": ""}'
    (tmp_path / "probe.json").write_text(text)
    assert read_probe(tmp_path / "probe.json") == Probe("6.1.0-57-amd64", "#1", {"cpu": "works"}, ("a: b",), "")


def test_probe_that_is_cut_is_none(tmp_path: Path) -> None:
    (tmp_path / "probe.json").write_text('{"release": "6.')
    assert read_probe(tmp_path / "probe.json") is None
