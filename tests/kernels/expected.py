# SPDX-License-Identifier: Apache-2.0
"""What is expected of each kernel: collectors, unwinding by tables, and the tests that are skipped there with the reason they give.

What is not expected fails the run, and so does a test that is skipped in silence, or one that is expected to be skipped and is not:
the table is what users are told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.kernels.offers import series_key

WORKS = "works"
ALL_COLLECTORS: Mapping[str, str] = dict.fromkeys(
    (
        "cpu",
        "cpu of a cgroup",
        "kernel names",
        "offcpu",
        "runqueue",
        "time",
        "lock",
        "syscall",
        "syscall_stack",
        "tcp",
        "tcp_stack",
        "lock_hold",
    ),
    WORKS,
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Of the plain Debian kernel of one series."""

    is_unwinding: bool
    why: str
    """What decides whether user stacks are unwound by tables: that reads user memory in a timer's interrupt."""
    collectors: Mapping[str, str] = field(default_factory=lambda: ALL_COLLECTORS)
    """State by name, in the words of `emberwatch-agent doctor`."""
    skips: Mapping[str, str] = field(default_factory=dict)
    """Test to a part of the reason it is skipped for; a test of many parameters may be named without them."""


EXPECTATIONS: Mapping[str, Expectation] = {
    "5.10": Expectation(is_unwinding=True, why="older than the hazard, which came with 5.19 (parca-dev/parca-agent#1675)"),
    "6.1": Expectation(is_unwinding=True, why="the hazard of parca-dev/parca-agent#1675 is mended since 6.1.36"),
    "6.12": Expectation(is_unwinding=True, why="newer than the hazard, which ended with 6.3.10"),
}
REQUIRED = ("6.1", "6.12")
"""A run of everything fails when the sources do not offer these."""


def expectation(series: str) -> Expectation | None:
    """Of a series that has no row of its own, what is expected of the newest one before it; None when it is older than all."""
    older = [each for each in EXPECTATIONS if series_key(each) <= series_key(series)]
    return EXPECTATIONS[max(older, key=series_key)] if older else None
