# SPDX-License-Identifier: Apache-2.0
"""What this host offers to each collector and what it lacks, in words, with the remedy.

What can be tried is tried: a setting that looks forbidding is told beside the result, never taken for the cause.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from agent.errors import KernelError
from agent.kernel.denylist import denials, remedy
from agent.kernel.headers import kernel_version
from agent.kernel.mounts import BPFFS, CGROUP2, TRACEFS, find_mount
from agent.kernel.refusal import KernelRefusal
from agent.kernel.spec import Hazard
from agent.kernel.system import SUPPORTED_MACHINE

OLDEST_KERNEL = (5, 10)
LOOKED_UP_FROM = (6, 1)
"""Since then mappings lie in a maple tree (bpf/shared/look.h)."""


class State(Enum):
    """How far something is offered."""

    WORKS = "works"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing a host offers or lacks."""

    name: str
    state: State
    detail: str
    remedy: str = ""
    """What to do or type; empty when there is nothing to mend."""


@dataclass(frozen=True, slots=True)
class CollectorReport:
    """Whether a collector can start here. `findings` are what bars or limits it, and the remedies."""

    name: str
    state: State
    findings: tuple[Capability, ...]


@dataclass(frozen=True, slots=True)
class HostView:
    """Where to look, and how to try. Each attempt returns when it worked and raises KernelError with the reason when not."""

    release: str
    machine: str
    attempts: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    """Of ATTEMPTS, by name; what is absent is not tried."""
    hazards: frozenset[Hazard] = frozenset()
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")


ATTEMPTS = ("bpf", "perf events", "program")
"""Make a map; open a timer; compile and load the program, which is tried when nothing else is missing."""

_FOR_THE_PROGRAM = frozenset({"machine", "kernel", "known lock-ups", "BTF", "BCC", "bpf", "perf events", "lockdown", "program"})
_NEEDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # collector: (what bars it when missing, what limits it)
    "cpu": (_FOR_THE_PROGRAM, frozenset({"kernel symbols", "unwinding"})),
    "cpu of a cgroup": (_FOR_THE_PROGRAM | {"cgroup v2"}, frozenset()),
    "kernel names": (frozenset({"kernel symbols"}), frozenset()),
}


def examine(host: HostView, has_bcc: Callable[[], bool]) -> tuple[CollectorReport, ...]:
    """A report for each collector; one that cannot start does not keep another from it."""
    found = {capability.name: capability for capability in capabilities(host, has_bcc)}
    return tuple(_report(name, bars, limits, found) for name, (bars, limits) in _NEEDS.items())


def capabilities(host: HostView, has_bcc: Callable[[], bool]) -> tuple[Capability, ...]:
    """Everything that is looked at, in the order it matters."""
    first = (_machine(host), _kernel(host), _lock_ups(host), _btf(host), _bcc(has_bcc()), _lockdown(host))
    rights = (_tried("bpf", host), _tried("perf events", host))
    is_barred = any(each.state is State.MISSING for each in (*first, *rights))
    return (
        *first,
        *rights,
        Capability("program", State.WORKS, "not tried") if is_barred else _tried("program", host),
        _unwinding(host),
        _kernel_symbols(host),
        _mounted("tracefs", TRACEFS.kind, host, "tracepoints by name are out of reach", f"mount -t tracefs tracefs {TRACEFS.places[0]}"),
        _mounted("bpffs", BPFFS.kind, host, "nothing can be pinned", f"mount -t bpf bpf {BPFFS.places[0]}"),
        _mounted(
            "cgroup v2", CGROUP2.kind, host, "a profile cannot be limited to a cgroup", "boot with systemd.unified_cgroup_hierarchy=1"
        ),
    )


def _report(name: str, bars: frozenset[str], limits: frozenset[str], found: Mapping[str, Capability]) -> CollectorReport:
    barring = [found[each] for each in found if each in bars and found[each].state is State.MISSING]
    limiting = [
        found[each] for each in found if each in bars | limits and found[each].state is not State.WORKS and found[each] not in barring
    ]
    state = State.MISSING if barring else State.LIMITED if limiting else State.WORKS
    return CollectorReport(name, state, tuple(barring + limiting))


def _machine(host: HostView) -> Capability:
    if host.machine == SUPPORTED_MACHINE:
        return Capability("machine", State.WORKS, host.machine)
    return Capability("machine", State.MISSING, f"{host.machine}: only {SUPPORTED_MACHINE} is supported")


def _kernel(host: HostView) -> Capability:
    oldest = ".".join(str(part) for part in OLDEST_KERNEL)
    try:
        version = kernel_version(host.release)
    except KernelError as error:
        return Capability("kernel", State.LIMITED, str(error))
    if (version.version, version.patch_level) < OLDEST_KERNEL:
        return Capability("kernel", State.MISSING, f"Linux {host.release} is too old", f"boot Linux {oldest} or later")
    return Capability("kernel", State.WORKS, f"Linux {host.release}")


def _lock_ups(host: HostView) -> Capability:
    try:
        entries = denials(host.hazards, host.release)
    except KernelError:
        entries = ()
    if not entries:
        return Capability("known lock-ups", State.WORKS, "none on this kernel for what the programs do")
    fixed = max((entry.fixed_in.version, entry.fixed_in.patch_level, entry.fixed_in.sub_level) for entry in entries)
    causes = "; ".join(f"{entry.effect}: {entry.cause}" for entry in entries)
    return Capability("known lock-ups", State.MISSING, causes, f"boot Linux {'.'.join(map(str, fixed))} or later")


def _unwinding(host: HostView) -> Capability:
    try:
        entries = denials(frozenset({Hazard.READ_USER_IN_INTERRUPT}), host.release)
    except KernelError:
        entries = ()
    if not entries:
        return Capability("unwinding", State.WORKS, f"user stacks are walked by unwind tables, {_since_when(host)}")
    why = f"off, user stacks are walked by frame pointers only: to read user memory in a timer {entries[0].effect} on this kernel"
    return Capability("unwinding", State.LIMITED, f"{why} ({entries[0].cause}; {entries[0].source})", remedy(entries[0]))


def _since_when(host: HostView) -> str:
    """From when on those of a new program are."""
    oldest = ".".join(str(part) for part in LOOKED_UP_FROM)
    try:
        version = kernel_version(host.release)
    except KernelError:
        return f"from a program's first sample on if this is Linux {oldest} or later"
    if (version.version, version.patch_level) >= LOOKED_UP_FROM:
        return "from a program's first sample on"
    return f"once the agent has read what a program maps (from its first sample on with Linux {oldest}, where BPF can look mappings up)"


def _btf(host: HostView) -> Capability:
    path = host.sys_root / "kernel/btf/vmlinux"
    if path.exists():
        return Capability("BTF", State.WORKS, str(path))
    return Capability("BTF", State.MISSING, f"{path} is missing", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y")


def _bcc(has_bcc: bool) -> Capability:
    if has_bcc:
        return Capability("BCC", State.WORKS, "the Python module bcc is there")
    return Capability("BCC", State.MISSING, "the Python module bcc is missing", "apt-get install python3-bpfcc (never pip install bcc)")


def _lockdown(host: HostView) -> Capability:
    text = _read(host.sys_root / "kernel/security/lockdown")
    if text is None:
        return Capability("lockdown", State.WORKS, "not known: securityfs is not mounted")
    if "[confidentiality]" in text:
        return Capability("lockdown", State.MISSING, "BPF may not read kernel memory", "boot with lockdown=integrity or lockdown=none")
    return Capability("lockdown", State.WORKS, text)


def _tried(name: str, host: HostView) -> Capability:
    attempt = host.attempts.get(name)
    beside = _settings_beside(name, host)
    if attempt is None:
        return Capability(name, State.WORKS, f"not tried{beside}")
    try:
        attempt()
    except KernelRefusal as refusal:
        return Capability(name, State.MISSING, f"{refusal.what}{beside}", refusal.remedy)
    except KernelError as error:
        return Capability(name, State.MISSING, f"{error}{beside}")
    return Capability(name, State.WORKS, f"tried{beside}")


def _settings_beside(name: str, host: HostView) -> str:
    """Settings that bear on an attempt; one that this kernel does not have is no cause of anything."""
    setting = {"bpf": "unprivileged_bpf_disabled", "perf events": "perf_event_paranoid"}.get(name)
    value = _read(host.proc_root / "sys/kernel" / setting) if setting else None
    return f" (kernel.{setting} = {value})" if value is not None else ""


def _kernel_symbols(host: HostView) -> Capability:
    """All-zero addresses are how the kernel hides them (kptr_restrict), see kernel/kallsyms.c."""
    restrict = _read(host.proc_root / "sys/kernel/kptr_restrict")
    try:
        with (host.proc_root / "kallsyms").open() as file:
            addresses = {file.readline().split(" ", 1)[0] for _ in range(3)}
    except OSError as error:
        return Capability("kernel symbols", State.LIMITED, f"/proc/kallsyms cannot be read: {error.strerror}")
    if all(address.strip("0\n") == "" for address in addresses):
        remedy = "run as root or with CAP_SYSLOG, and when kernel.kptr_restrict is 2: sysctl kernel.kptr_restrict=1"
        return Capability("kernel symbols", State.LIMITED, f"addresses are hidden (kernel.kptr_restrict = {restrict})", remedy)
    return Capability("kernel symbols", State.WORKS, "/proc/kallsyms shows addresses")


def _mounted(name: str, kind: str, host: HostView, consequence: str, remedy: str) -> Capability:
    place = find_mount(kind, host.proc_root / "self/mounts")
    if place is not None:
        return Capability(name, State.WORKS, f"mounted at {place}")
    return Capability(name, State.LIMITED, f"not mounted: {consequence}", remedy)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
