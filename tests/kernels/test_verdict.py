# SPDX-License-Identifier: Apache-2.0
"""A kernel passes when everything is as expected: no silent skip, no test that did not run, nothing better than the table either."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.kernels.expected import Expectation
from tests.kernels.guest import GuestEnd
from tests.kernels.results import Outcome, Probe, TestOutcome
from tests.kernels.verdict import Run, surprises

PASSED = TestOutcome(Outcome.PASSED)
PROBE = Probe("6.1.0-57-amd64", "#1 SMP Debian 6.1.192-3", {"cpu": "works"}, (), "")
EXPECTED = Expectation(is_unwinding=True, why="mended", collectors={"cpu": "works"}, skips={"t.py::test_b": "needs a fish"})
SKIPPED = TestOutcome(Outcome.SKIPPED, "needs a fish here")
AS_EXPECTED = {"t.py::test_a": PASSED, "t.py::test_b[7]": SKIPPED}


def run(outcomes: Mapping[str, TestOutcome] = AS_EXPECTED, probe: Probe | None = PROBE, status: int | None = 0) -> Run:
    return Run("6.1", "linux-image", datetime(2026, 11, 29, tzinfo=UTC), GuestEnd(status, 307.4, ""), probe, outcomes)


def told(tried: Run, expected: Expectation = EXPECTED) -> list[str]:
    return surprises(tried, expected, AS_EXPECTED.keys())


def test_as_expected_is_no_surprise() -> None:
    assert told(run()) == []


@pytest.mark.parametrize(
    ("outcomes", "surprise"),
    [
        ({"t.py::test_b[7]": SKIPPED}, "t.py::test_a did not run"),
        (
            {**AS_EXPECTED, "t.py::test_a": TestOutcome(Outcome.SKIPPED, "needs gcc")},
            "t.py::test_a was skipped (needs gcc), expected: passed",
        ),
        (
            {**AS_EXPECTED, "t.py::test_b[7]": TestOutcome(Outcome.SKIPPED, "needs gcc")},
            "t.py::test_b[7] was skipped (needs gcc), expected: skipped (needs a fish)",
        ),
        ({**AS_EXPECTED, "t.py::test_b[7]": PASSED}, "t.py::test_b[7] passed, expected: skipped (needs a fish)"),
        ({**AS_EXPECTED, "t.py::test_a": TestOutcome(Outcome.FAILED, "assert 2 == 3")}, "t.py::test_a failed: assert 2 == 3"),
    ],
)
def test_each_test_that_is_not_as_expected_is_told(outcomes: dict[str, TestOutcome], surprise: str) -> None:
    assert told(run(outcomes)) == [surprise]


def test_guest_that_does_not_end_is_told() -> None:
    assert told(run(status=None)) == ["the guest did not come to its end in 307 s"]
    assert told(run(status=2)) == ["the guest's script ended with status 2"]


def test_what_the_agent_says_is_compared() -> None:
    assert told(run(probe=None)) == ["the agent did not say what the kernel offers"]
    lacking = replace(PROBE, collectors={"cpu": "missing", "new": "works"}, findings=("BTF: is missing",))
    assert told(run(probe=lacking)) == [
        "collector cpu: missing, expected: works (BTF: is missing)",
        "collector new: works, expected: not in the table (BTF: is missing)",
    ]


def test_unwinding_is_on_or_off_as_the_table_says() -> None:
    assert told(run(probe=replace(PROBE, unwinding_denial="locks up"))) == ["unwinding is off (locks up), expected on: mended"]
    assert told(run(), replace(EXPECTED, is_unwinding=False, why="denied")) == ["unwinding is on, expected off: denied"]
