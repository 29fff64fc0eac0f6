# SPDX-License-Identifier: Apache-2.0
"""Reads /proc/PID/cgroup (cgroups(7)) into a container or a systemd unit.

Version 1 has a line per hierarchy, version 2 the line `0::PATH`; both are searched, version 2 and systemd's own hierarchy first.
Containers by path: docker-ID.scope, /docker/ID, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, /kubepods/…/ID, /ecs/…/ID
have an id of 64 hex digits; lxc, nspawn and their like have names.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

MAX_CGROUP_BYTES = 64 << 10
_SHORT_ID_CHARS = 12
_CONTAINER_ID = re.compile(rb"(?:^|[-:./])([0-9a-f]{64})(?:\.scope)?$")
_CONTAINER_NAME = re.compile(rb"^(?:lxc\.payload\.|machine-)(.+?)(?:\.scope)?$")
_UNIT = re.compile(rb"^(.+)\.service$")
_USER_MANAGER = re.compile(rb"^user@\d+\.service$")
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_MONITORS = (b"libpod-conmon-", b"crio-conmon-")
"""Beside the container, not in it."""


@dataclass(frozen=True, slots=True)
class CgroupNames:
    """What the cgroups of a process call it; empty where they do not."""

    container: bytes
    """First 12 digits of the container's id, as container tools print it, or its name where it has one."""
    unit: bytes
    """systemd service without ".service" and without the instance of a template: getty@tty1.service is "getty"."""


@lru_cache(maxsize=64)
def parse_cgroup(raw: bytes) -> CgroupNames:
    """Parse a whole cgroup file. The innermost container and the innermost unit count. Processes of a group, which are many, have the same
    text."""
    container = unit = b""
    for path in _paths(raw):
        for part in reversed(path.split(b"/")):
            container = container or _container(part)
            unit = unit or _unit(part)
        if b"/lxc/" in path and not container:
            container = path.partition(b"/lxc/")[2].partition(b"/")[0]
    return CgroupNames(container, unit)


def cpu_cgroup(raw: bytes) -> tuple[bool, bytes]:
    """Whether it lies in a hierarchy of version 1, and the path of the cgroup that limits a process's CPU; b"/" when none does."""
    lines = [line.split(b":", 2) for line in raw.split(b"\n")]
    whole = [line for line in lines if len(line) == 3]
    old = next((path for _, controllers, path in whole if b"cpu" in controllers.split(b",")), None)
    if old is not None:
        return True, old
    return False, next((path for number, _, path in whole if number == b"0"), b"/")


def _paths(raw: bytes) -> list[bytes]:
    lines = [line.split(b":", 2) for line in raw.split(b"\n")]
    whole = [line for line in lines if len(line) == 3]
    whole.sort(key=lambda line: (line[0] != b"0", line[1] != b"name=systemd"))
    return [line[2] for line in whole]


def _container(part: bytes) -> bytes:
    if part.startswith(_MONITORS):
        return b""
    by_id = _CONTAINER_ID.search(part)
    if by_id:
        return by_id[1][:_SHORT_ID_CHARS]
    by_name = _CONTAINER_NAME.match(part)
    return _unescaped(by_name[1]) if by_name else b""


def _unit(part: bytes) -> bytes:
    unit = _UNIT.match(part)
    if unit is None or _USER_MANAGER.match(part):
        return b""
    return _unescaped(unit[1].partition(b"@")[0])


def _unescaped(name: bytes) -> bytes:
    """Undo systemd's \\x2d escapes (systemd.unit(5))."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), name)
