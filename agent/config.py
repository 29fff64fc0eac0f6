# SPDX-License-Identifier: Apache-2.0
"""Settings of the agent: one row each, from which flag, environment name, file key and documentation follow.

A field `rate_hz` is the flag --rate-hz, the variable EMBERWATCH_RATE_HZ and the key `rate_hz` of the table [agent] in emberwatch.toml.
Flags win over the environment, the environment over the file.
"""

import os
import re
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from agent.errors import ConfigError

Value = TypeVar("Value", str, int, bool)
_HOST_BYTES = 256
"""What the server takes as the value of a label."""
KINDS = ("cpu", "offcpu", "runqueue", "time", "lock", "syscall", "syscall_stack", "tcp", "tcp_stack", "lock_hold")
"""All there are, whether this kernel offers them or not."""
ON_DEMAND = ("lock_hold",)
"""Kinds that run only when they are named."""
WAIT_CLASSES = ("lock", "disk", "net", "pipe", "poll", "sleep", "page", "child", "other")
_FUNCTION = re.compile(r"[A-Za-z_]\w*", re.ASCII)
Check = Callable[[Any], str | None]
"""Gives a sentence when a value cannot be used."""


def _row(default: Value, explanation: str, check: Check = lambda _: None) -> Value:
    row: Value = field(default=default, metadata={"help": explanation, "check": check})
    return row


def _between(low: int, high: int) -> Check:
    return lambda value: None if low <= value <= high else f"must be from {low} to {high}"


def _host_and_port(value: str) -> str | None:
    host, _, port = value.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    return None if _is_host(host) and is_port else "must be HOST:PORT"


def _is_host(name: str) -> bool:
    """Whether it may stand for a host at all: the look-up of the system, and gRPC, raise for what does not."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def _host_name(value: str) -> str | None:
    return None if len(os.fsencode(value)) <= _HOST_BYTES else f"must have at most {_HOST_BYTES} bytes"


def _numbers(value: str) -> str | None:
    is_list = all(part.strip().isascii() and part.strip().isdigit() for part in value.split(",") if part)
    return None if is_list else "must be numbers with commas between"


def _kinds(value: str) -> str | None:
    unknown = sorted({part.strip() for part in value.split(",") if part.strip()} - {"all", *KINDS})
    return f"must be all or some of {', '.join(KINDS)}: not {', '.join(unknown)}" if unknown else None


def _wait_classes(value: str) -> str | None:
    seen = set()
    for part in filter(None, map(str.strip, value.split(","))):
        service, found, shown = _override(part)
        if not service or not _FUNCTION.fullmatch(found) or shown not in WAIT_CLASSES:
            return f"{part} must be SERVICE:CLASS=CLASS or SERVICE:CALL=CLASS, of classes {', '.join(WAIT_CLASSES)}"
        if (service, found) in seen:
            return f"{found} of {service} is named twice"
        seen.add((service, found))
    return None


def _override(part: str) -> tuple[str, str, str]:
    """Service, class that is found (or call), class that it is shown as. A service may have colons in its name."""
    service, _, classes = part.rpartition(":")
    found, _, shown = classes.partition("=")
    return service.strip(), found.strip(), shown.strip()


def _level(value: str) -> str | None:
    return None if value in {"debug", "info", "warning", "error"} else "must be debug, info, warning or error"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked."""

    server: str = _row("127.0.0.1:4041", "Where the server takes windows, HOST:PORT.", _host_and_port)
    insecure: bool = _row(False, "Send without encryption to a server that is not on this host.")
    host: str = _row("", "Name of this host; empty means the host name.", _host_name)
    rate_hz: int = _row(99, "Samples a second and CPU; 99 and 49 keep out of step with timers.", _between(1, 10_000))
    window_s: int = _row(10, "Length of a window, seconds; windows start at multiples of it.", _between(1, 60))
    pid: str = _row("", "Only these processes and what they start: PIDs with commas between.", _numbers)
    cgroup: str = _row("", "Only processes in this cgroup (a folder under /sys/fs/cgroup).")
    data_dir: str = _row("/var/lib/emberwatch-agent", "Folder for the spool, the agent's id and caches.")
    cache_dir: str = _row("", "Folder for what can be made again (unwind tables, kernel headers); empty means inside data_dir.")
    unwind_cache_bytes: int = _row(128 << 20, "Most bytes of unwind tables kept on disk; libc takes 0.1 MB.", _between(1 << 20, 1 << 40))
    spool_bytes: int = _row(512 << 20, "Most bytes of windows kept while the server cannot be reached.", _between(1 << 20, 1 << 40))
    spool_h: int = _row(24, "Longest time a window is kept, hours.", _between(1, 24 * 30))
    log_level: str = _row("info", "How much is logged: debug, info, warning or error.", _level)
    kinds: str = _row(
        "all",
        "What is profiled: all that this kernel offers, or kinds with commas between; cpu always is, lock_hold only when named.",
        _kinds,
    )
    threshold_us: int = _row(1000, "Waits and calls shorter than this are added up without their stacks, microseconds.", _between(0, 10**8))
    events_per_s: int = _row(
        20_000,
        "Events a second and CPU above which a kind runs in duty cycles, scaled by time; 0: no limit, of stacks and calls neither.",
        _between(0, 10**8),
    )
    calls_cpu_percent: int = _row(
        1, "Percent of each CPU for system calls; above it they are counted and a part is timed, then sampled.", _between(1, 100)
    )
    wait_classes: str = _row("", "Wait classes shown as others: SERVICE:CLASS=CLASS or SERVICE:CALL=CLASS, commas between.", _wait_classes)
    stacks_entries: int = _row(0, "Stacks the kernel maps hold; 0 sizes them by CPUs, rate and window.", _between(0, 1 << 20))

    def pids(self) -> frozenset[int]:
        """The PIDs of `pid`."""
        return frozenset(int(part) for part in self.pid.split(",") if part)

    def wants(self, kind: str) -> bool:
        """Whether `kinds` names it, or all and it is not one that must be named."""
        named = {part.strip() for part in self.kinds.split(",")}
        return kind in named or ("all" in named and kind not in ON_DEMAND)

    def class_overrides(self) -> dict[bytes, dict[bytes, bytes]]:
        """`wait_classes` by service: the class that is found, or the call, and the class it is shown as."""
        by_service: dict[bytes, dict[bytes, bytes]] = {}
        for service, found, shown in map(_override, filter(None, map(str.strip, self.wait_classes.split(",")))):
            by_service.setdefault(os.fsencode(service), {})[found.encode()] = shown.encode()
        return by_service

    def override_calls(self) -> frozenset[str]:
        """What `wait_classes` names beside classes: system calls, and other functions of the kernel."""
        named = {found.decode() for changes in self.class_overrides().values() for found in changes}
        return frozenset(named - set(WAIT_CLASSES))

    def host_name(self) -> bytes:
        """The name this host goes by."""
        return os.fsencode(self.host or socket.gethostname())


def checked(settings: Settings) -> Settings:
    """Give `settings` back, or raise ConfigError naming the setting, its value and what it must be."""
    for row in fields(settings):
        value = getattr(settings, row.name)
        complaint = row.metadata["check"](value)
        if complaint:
            raise ConfigError(f"{row.name} is {value!r}: {complaint}")
    return settings


def as_mapping(settings: Settings) -> dict[str, str | int | bool]:
    """Plain values by name, from which Settings(**mapping) is made again."""
    return asdict(settings)
