# SPDX-License-Identifier: Apache-2.0
"""A kernel is barred only for programs that do what hangs it, and only until the release that mends it."""

import pytest

from agent.errors import KernelError
from agent.kernel.denylist import DENIED_KERNELS, denials, refuse_denied
from agent.kernel.program import unwinding_denial
from agent.kernel.spec import Hazard, ProgramSpec
from agent.profilers.cpu import SPEC

READS_USER = frozenset({Hazard.READ_USER_IN_INTERRUPT})
DISABLES = frozenset({Hazard.DISABLE_EVENT_IN_TIMER})


@pytest.mark.parametrize(
    ("release", "is_denied"),
    [
        ("5.18.19", False),
        ("5.19.0", True),
        ("6.1.35-amd64", True),
        ("6.1.36-amd64", False),
        ("6.2.16", True),
        ("6.3.9", True),
        ("6.3.10", False),
    ],
)
def test_reading_user_memory_in_an_interrupt_is_barred_between_5_19_and_its_fixes(release: str, is_denied: bool) -> None:
    assert bool(denials(READS_USER, release)) is is_denied


@pytest.mark.parametrize(
    ("release", "is_denied"), [("6.15.9", False), ("6.16.3", True), ("6.17.7", True), ("6.17.8", False), ("6.18.0", False)]
)
def test_disabling_an_event_in_its_timer_is_barred_on_6_16_and_6_17(release: str, is_denied: bool) -> None:
    assert bool(denials(DISABLES, release)) is is_denied


@pytest.mark.parametrize("release", ["6.1.0", "6.16.3", "6.17.1", "5.14.0-427.el9"])
def test_on_cpu_program_does_nothing_that_is_barred(release: str) -> None:
    refuse_denied(SPEC, release)


@pytest.mark.parametrize(
    ("release", "is_off"), [("5.10.0-1", False), ("6.1.0-9", True), ("6.1.36", False), ("6.2.16", True), ("6.18.4", False)]
)
def test_unwinding_stays_off_where_it_would_hang_the_host_and_says_so(release: str, is_off: bool) -> None:
    assert bool(unwinding_denial(release)) == is_off
    assert not is_off or "parca-agent" in unwinding_denial(release)


def test_refusal_says_cause_and_remedy() -> None:
    spec = ProgramSpec("x.bpf.c", {}, (), DISABLES)
    with pytest.raises(KernelError, match=r"x\.bpf\.c hangs the host on Linux 6\.17\.1: .*; use Linux 6\.17\.8 or later, where"):
        refuse_denied(spec, "6.17.1")


def test_every_entry_says_where_it_is_known_from() -> None:
    assert all("#" in entry.source and entry.cause and entry.effect and entry.fix for entry in DENIED_KERNELS)
