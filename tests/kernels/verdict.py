# SPDX-License-Identifier: Apache-2.0
"""Compares what came out of a guest with what is expected of its kernel."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tests.kernels.expected import Expectation
from tests.kernels.guest import GuestEnd
from tests.kernels.results import Outcome, Probe, TestOutcome


@dataclass(frozen=True, slots=True)
class Run:
    """One kernel, tried once."""

    series: str
    package: str
    began: datetime
    end: GuestEnd
    probe: Probe | None
    outcomes: Mapping[str, TestOutcome]

    def count(self, outcome: Outcome) -> int:
        return sum(each.outcome is outcome for each in self.outcomes.values())


def surprises(run: Run, expected: Expectation, wanted: Collection[str]) -> list[str]:
    """Everything that is not as expected, in words; empty when the kernel passes. `wanted` are the tests that had to run."""
    return [*_of_the_guest(run), *_of_the_probe(run.probe, expected), *_of_the_tests(run.outcomes, expected, wanted)]


def _of_the_guest(run: Run) -> Iterator[str]:
    if run.end.status is None:
        yield f"the guest did not come to its end in {run.end.seconds:.0f} s"
    elif run.end.status not in (0, 1):  # 1: tests failed, and which is told below.
        yield f"the guest's script ended with status {run.end.status}"


def _of_the_probe(probe: Probe | None, expected: Expectation) -> Iterator[str]:
    if probe is None:
        yield "the agent did not say what the kernel offers"
        return
    for name in sorted(expected.collectors.keys() | probe.collectors.keys()):
        is_state, should_state = probe.collectors.get(name, "unknown"), expected.collectors.get(name, "not in the table")
        if is_state != should_state:
            yield f"collector {name}: {is_state}, expected: {should_state} ({'; '.join(probe.findings) or 'without a finding'})"
    if expected.is_unwinding and probe.unwinding_denial:
        yield f"unwinding is off ({probe.unwinding_denial}), expected on: {expected.why}"
    elif not expected.is_unwinding and not probe.unwinding_denial:
        yield f"unwinding is on, expected off: {expected.why}"


def _of_the_tests(outcomes: Mapping[str, TestOutcome], expected: Expectation, wanted: Collection[str]) -> Iterator[str]:
    for name in sorted(set(wanted) - outcomes.keys()):
        yield f"{name} did not run"
    for name, found in sorted(outcomes.items()):
        reason = expected_skip(name, expected.skips)
        if found.outcome is Outcome.FAILED:
            yield f"{name} failed: {found.reason}"
        elif found.outcome is Outcome.SKIPPED and (reason is None or reason not in found.reason):
            yield f"{name} was skipped ({found.reason}), expected: {f'skipped ({reason})' if reason else 'passed'}"
        elif found.outcome is Outcome.PASSED and reason is not None:
            yield f"{name} passed, expected: skipped ({reason})"


def expected_skip(test: str, skips: Mapping[str, str]) -> str | None:
    """The reason for which a test is to be skipped; None when it is not."""
    return skips.get(test, skips.get(test.partition("[")[0]))
