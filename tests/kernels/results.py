# SPDX-License-Identifier: Apache-2.0
"""What came out of a guest: outcomes of tests from pytest's JUnit file, and what the kernel offers from the probe."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

from tests.kernels.errors import MatrixError


class Outcome(Enum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """`reason` of a skip or the first line of a failure; empty when it passed."""

    __test__ = False  # Not for pytest to collect.

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """What the agent says of a kernel."""

    release: str
    build: str
    """Second half of `uname -a`, with the version of the package."""
    collectors: Mapping[str, str]
    """State by name."""
    findings: tuple[str, ...]
    """Why a collector does not fully work."""
    unwinding_denial: str
    """Why user stacks are not unwound by tables; empty when they are."""


def read_outcomes(path: Path) -> dict[str, TestOutcome]:
    """Outcomes by test, such as tests/bpf/test_cpu.py::test_x[a]. Empty when there is no file: pytest did not come to its end."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    return parse_outcomes(text)


def parse_outcomes(text: str) -> dict[str, TestOutcome]:
    """Of a test that fails in more than one phase the last failure stays."""
    try:
        cases = list(ElementTree.fromstring(text).iter("testcase"))
    except ElementTree.ParseError as error:
        raise MatrixError(f"read the results of pytest: {error}") from error
    found: dict[str, TestOutcome] = {}
    for case in cases:
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '')}"
        outcome = _outcome(case)
        if found.get(name, outcome).outcome is not Outcome.FAILED or outcome.outcome is Outcome.FAILED:
            found[name] = outcome
    return found


def read_probe(path: Path) -> Probe | None:
    """None when the probe did not come to its end."""
    try:
        fields = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return Probe(fields["release"], fields["build"], fields["collectors"], tuple(fields["findings"]), str(fields["unwinding_denial"]))


def _outcome(case: ElementTree.Element) -> TestOutcome:
    for kind, outcome in (("failure", Outcome.FAILED), ("error", Outcome.FAILED), ("skipped", Outcome.SKIPPED)):
        element = case.find(kind)
        if element is not None:
            message = element.get("message") or element.text or ""
            return TestOutcome(outcome, next(iter(message.strip().splitlines()), "no reason"))
    return TestOutcome(Outcome.PASSED)
