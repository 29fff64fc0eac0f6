# SPDX-License-Identifier: Apache-2.0
"""What /sys and /proc tell of the kernel's parts: build ids, which modules are live, and a cheap sign of change.

A change of the sign means that kallsyms must be read again (50 ms); looking for it costs less than 1 ms. BPF programs are known by their
ids, which only grow: a program that takes the address of another has a new id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.kernel.bpf import Command, ids
from agent.records.build_id import build_id_from_notes
from emberwatch.v1 import batch_pb2 as pb

_MAX_NOTES_BYTES = 64 << 10
_MAX_MODULES_BYTES = 4 << 20


def bpf_program_ids() -> frozenset[int] | None:
    """Ids of all loaded BPF programs; None when the kernel does not let us ask (needs CAP_SYS_ADMIN)."""
    try:
        return frozenset(ids(Command.PROG_GET_NEXT_ID))
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class KernelSources:
    """Where to read; tests give their own."""

    kallsyms: Path = Path("/proc/kallsyms")
    modules: Path = Path("/proc/modules")
    sys_module: Path = Path("/sys/module")
    notes: Path = Path("/sys/kernel/notes")
    bpf_programs: Callable[[], frozenset[int] | None] = bpf_program_ids


@dataclass(frozen=True, slots=True)
class ChangeSign:
    """Equal as long as no module and no BPF program came or went."""

    modules: tuple[bytes, ...]
    """Name, size, state and address of each."""
    programs: frozenset[int] | None
    """None when the kernel does not tell: then only age and misses can."""


def kernel_build_id(sources: KernelSources) -> tuple[pb.BuildIdKind, bytes]:
    """Build id of the running kernel."""
    return build_id_from_notes(_read(sources.notes, _MAX_NOTES_BYTES), 4)


def module_build_id(sources: KernelSources, name: bytes) -> tuple[pb.BuildIdKind, bytes]:
    """Build id of a loaded module."""
    if b"/" in name or name in (b"", b".", b".."):
        return pb.BUILD_ID_KIND_NONE, b""
    notes = sources.sys_module / name.decode("utf-8", "surrogateescape") / "notes" / ".note.gnu.build-id"
    return build_id_from_notes(_read(notes, _MAX_NOTES_BYTES), 4)


def change_sign(sources: KernelSources) -> ChangeSign:
    """The sign now."""
    return ChangeSign(loaded_modules(sources), sources.bpf_programs())


def loaded_modules(sources: KernelSources) -> tuple[bytes, ...]:
    """ChangeSign.modules. Reference counts, which change all the time, are left out."""
    lines = [line.split() for line in _read(sources.modules, _MAX_MODULES_BYTES).split(b"\n")]
    return tuple(b" ".join((f[0], f[1], f[4], f[5])) for f in lines if len(f) >= 6)


def live_modules(sign: ChangeSign) -> frozenset[bytes] | None:
    """Modules that have finished loading; None when /proc/modules tells of none."""
    if not sign.modules:
        return None
    return frozenset(line.split(b" ", 1)[0] for line in sign.modules if line.split(b" ")[2] == b"Live")


def _read(path: Path, limit_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit_bytes)
    except OSError:
        return b""
