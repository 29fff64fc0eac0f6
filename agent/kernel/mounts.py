# SPDX-License-Identifier: Apache-2.0
"""Finds where the kernel's file systems are mounted; on a fresh machine tracefs and bpffs are not. Nothing that runs today needs them:
programs are attached by descriptor, and the doctor says what to type."""

from dataclasses import dataclass
from pathlib import Path

from agent.errors import KernelError

LIMIT_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system of the kernel and where it is mounted by custom, best first."""

    name: str
    kind: str
    places: tuple[Path, ...]


TRACEFS = FileSystem("tracefs", "tracefs", (Path("/sys/kernel/tracing"),))
BPFFS = FileSystem("bpffs", "bpf", (Path("/sys/fs/bpf"),))
CGROUP2 = FileSystem("cgroup v2", "cgroup2", (Path("/sys/fs/cgroup"),))


def find_mount(kind: str, mounts: Path = Path("/proc/self/mounts")) -> Path | None:
    """The first place where a file system of this kind is mounted."""
    try:
        with mounts.open("rb") as file:
            text = file.read(LIMIT_BYTES)
    except OSError as error:
        raise KernelError(f"cannot read {mounts}: {error.strerror}") from error
    for line in text.splitlines():
        fields = line.split(b" ")
        if len(fields) > 3 and fields[2] == kind.encode():
            return Path(_unescaped(fields[1]))
    return None


def _unescaped(place: bytes) -> str:
    r"""Space, tab, newline and backslash stand as \040 and the like; proc_pid_mounts(5)."""
    parts = place.split(b"\\")
    text = parts[0]
    for part in parts[1:]:
        text += bytes((int(part[:3], 8) & 0xFF,)) + part[3:] if part[:3].isdigit() else b"\\" + part
    return text.decode("utf-8", "surrogateescape")
