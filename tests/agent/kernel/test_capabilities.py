# SPDX-License-Identifier: Apache-2.0
"""The true reason is told for each collector, and a lack of one thing bars only who needs it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.capabilities import CollectorReport, HostView, State, capabilities, examine
from agent.kernel.refusal import KernelRefusal


def yes() -> bool:
    return True


def works() -> None:
    pass


def fails(error: KernelError) -> Callable[[], None]:
    def attempt() -> None:
        raise error

    return attempt


@pytest.fixture
def host(tmp_path: Path) -> HostView:
    """A host where everything works, with nothing mounted but cgroup v2."""
    proc_root, sys_root = tmp_path / "proc", tmp_path / "sys"
    for directory in (proc_root / "sys/kernel", proc_root / "self", sys_root / "kernel/btf", sys_root / "kernel/security"):
        directory.mkdir(parents=True)
    (sys_root / "kernel/btf/vmlinux").write_bytes(b"")
    (sys_root / "kernel/security/lockdown").write_text("none [integrity] confidentiality\n")
    (proc_root / "self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (proc_root / "sys/kernel/perf_event_paranoid").write_text("4\n")
    (proc_root / "sys/kernel/kptr_restrict").write_text("1\n")
    (proc_root / "kallsyms").write_text("ffffffff81000000 T _text\nffffffff81000040 t a\nffffffff81000080 t b\n")
    attempts = {"bpf": works, "perf events": works, "program": works}
    return HostView("6.1.140-44-amd64", "x86_64", attempts, proc_root=proc_root, sys_root=sys_root)


def report(host: HostView, name: str, has_bcc: Callable[[], bool] = yes) -> CollectorReport:
    return next(each for each in examine(host, has_bcc) if each.name == name)


def test_everything_there_is_said_to_work(host: HostView) -> None:
    assert [each.state for each in examine(host, yes)] == [State.WORKS] * 3


def test_forbidding_setting_is_no_cause_when_the_attempt_works(host: HostView) -> None:
    """perf_event_paranoid is 4 here, and the event opens all the same."""
    assert report(host, "cpu").findings == ()


def test_refused_right_is_told_with_setting_and_remedy(host: HostView) -> None:
    refusal = KernelRefusal("perf_event_open for CPU 0 is not permitted", "run as root")
    cpu = report(replace(host, attempts={**host.attempts, "perf events": fails(refusal)}), "cpu")
    assert cpu.state is State.MISSING
    assert cpu.findings[0].detail == "perf_event_open for CPU 0 is not permitted (kernel.perf_event_paranoid = 4)"
    assert cpu.findings[0].remedy == "run as root"


def test_missing_setting_is_not_mistaken_for_the_cause(host: HostView) -> None:
    (host.proc_root / "sys/kernel/perf_event_paranoid").unlink()
    cpu = report(
        replace(host, attempts={**host.attempts, "perf events": fails(KernelError("perf_event_open: Too many open files"))}), "cpu"
    )
    assert cpu.findings[0].detail == "perf_event_open: Too many open files"


def test_verifier_that_refuses_is_the_reason(host: HostView) -> None:
    refusal = KernelError("load on_tick of cpu.bpf.c into Linux 5.10.0: invalid argument; the loader said last:\nR1 type=inv")
    cpu = report(replace(host, attempts={**host.attempts, "program": fails(refusal)}), "cpu")
    assert [finding.name for finding in cpu.findings] == ["program"]
    assert "R1 type=inv" in cpu.findings[0].detail
    assert report(host, "kernel names").state is State.WORKS


def test_no_btf_bars_the_program_before_it_is_tried(host: HostView) -> None:
    (host.sys_root / "kernel/btf/vmlinux").unlink()
    cpu = report(replace(host, attempts={**host.attempts, "program": fails(KernelError("must not be tried"))}), "cpu")
    assert [(finding.name, finding.remedy) for finding in cpu.findings] == [("BTF", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y")]


def test_what_bars_the_program_bars_it_for_a_cgroup_too(host: HostView) -> None:
    (host.sys_root / "kernel/btf/vmlinux").unlink()
    (host.sys_root / "kernel/security/lockdown").write_text("none integrity [confidentiality]\n")
    cpu, of_a_cgroup = report(host, "cpu", lambda: False), report(host, "cpu of a cgroup", lambda: False)
    assert of_a_cgroup.state is State.MISSING
    assert [each.name for each in of_a_cgroup.findings] == [each.name for each in cpu.findings] == ["BTF", "BCC", "lockdown"]


def test_missing_bcc_names_the_package(host: HostView) -> None:
    cpu = report(host, "cpu", lambda: False)
    assert cpu.findings[0].remedy == "apt-get install python3-bpfcc (never pip install bcc)"


def test_zero_addresses_limit_names_and_do_not_bar_samples(host: HostView) -> None:
    (host.proc_root / "kallsyms").write_text("0000000000000000 T _text\n" * 3)
    assert report(host, "cpu").state is State.LIMITED
    assert report(host, "kernel names").findings[0].detail == "addresses are hidden (kernel.kptr_restrict = 1)"


@pytest.mark.parametrize(("release", "state"), [("5.9.16", State.MISSING), ("5.10.0", State.WORKS), ("odd", State.LIMITED)])
def test_oldest_kernel_is_5_10(host: HostView, release: str, state: State) -> None:
    assert report(replace(host, release=release), "cpu").state is state


def test_other_machine_is_named(host: HostView) -> None:
    assert report(replace(host, machine="riscv64"), "cpu").findings[0].detail == "riscv64: only x86_64 is supported"


def test_confidentiality_bars_and_integrity_does_not(host: HostView) -> None:
    (host.sys_root / "kernel/security/lockdown").write_text("none integrity [confidentiality]\n")
    assert [finding.name for finding in report(host, "cpu").findings] == ["lockdown"]


def test_without_cgroup_v2_only_the_limit_by_cgroup_is_limited(host: HostView) -> None:
    (host.proc_root / "self/mounts").write_text("")
    assert report(host, "cpu").state is State.WORKS
    assert report(host, "cpu of a cgroup").state is State.LIMITED


@pytest.mark.parametrize(("release", "state"), [("6.0.19", State.LIMITED), ("6.1.36", State.WORKS), ("odd", State.WORKS)])
def test_unwinding_that_would_hang_this_kernel_limits_on_cpu_and_says_where_it_is_mended(
    host: HostView, release: str, state: State
) -> None:
    (found,) = [each for each in capabilities(replace(host, release=release), yes) if each.name == "unwinding"]
    assert found.state is state
    if state is State.LIMITED:
        assert "parca-agent#1675" in found.detail and "6.1.36" in found.remedy
        cpu = next(each for each in examine(replace(host, release=release), yes) if each.name == "cpu")
        assert (cpu.state, found in cpu.findings) == (State.LIMITED, True)


@pytest.mark.parametrize(("release", "when"), [("6.1.140", "from a program's first sample on"), ("5.15.0", "once the agent has read")])
def test_it_is_said_from_when_on_the_stacks_of_a_program_are_unwound(host: HostView, release: str, when: str) -> None:
    (found,) = [each for each in capabilities(replace(host, release=release), yes) if each.name == "unwinding"]
    assert (found.state, when in found.detail) == (State.WORKS, True)
