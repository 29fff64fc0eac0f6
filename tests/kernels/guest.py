# SPDX-License-Identifier: Apache-2.0
"""Boots a kernel under QEMU's emulation with this host's files as its root, runs a shell script in it, and waits for its end.

The root is shared read only; what the guest changes it changes in its own memory. Only `out` is shared for writing.
"""

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.errors import MatrixError

QEMU = "qemu-system-x86_64"
CPU = "max,-avx,-avx2"
"""Without AVX: QEMU 7.2 emulates it wrongly, and numpy sorts by it (argsort of 9 to 32 numbers out of order, one time in three)."""
OLDEST_QEMU = 10
"""QEMU 7.2 keeps what it translated of code that another CPU has patched meanwhile, now and then: the kernel meets a breakpoint of its own
that is long gone, and ends or hangs (seen in code of tracepoints). Versions between were not tried.
"""
CPUS = 2
MEMORY_MB = 3072
SHARED = "security_model=none,multidevs=remap"
APPEND = "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check"
"""Without the check of the timer: on a busy host it comes too late for it, and the kernel gives up."""


@dataclass(frozen=True, slots=True)
class Boot:
    """Files to boot with."""

    vmlinuz: Path
    initramfs: Path


@dataclass(frozen=True, slots=True)
class GuestEnd:
    """How a guest ended."""

    status: int | None
    """Exit status of the script; None when the guest did not come to its end."""
    seconds: float
    console: str

    @property
    def last_words(self) -> str:
        """For messages."""
        return "\n".join(self.console.splitlines()[-15:])


def run_guest(boot: Boot, script: str, out: Path, limit_s: float) -> GuestEnd:
    """Run the script as root of a guest. It finds `out` at /run/out. A guest that takes longer than the limit is switched off."""
    (out / "run.sh").write_text(script)
    console = out / "console.txt"
    start = time.monotonic()
    try:
        with console.open("wb") as output, subprocess.Popen(command(boot, out), stdin=subprocess.DEVNULL, stdout=output) as machine:
            try:
                machine.wait(limit_s)
            finally:
                machine.kill()
    except subprocess.TimeoutExpired:
        pass  # The console says how far it came; there is no status.
    except OSError as error:
        raise MatrixError(f"start {QEMU}: {error.strerror}") from error
    text = console.read_text(errors="replace")
    return GuestEnd(status_in(text), time.monotonic() - start, text)


def command(boot: Boot, out: Path) -> list[str]:
    """Of the machine: no network, no display, no disk. It gives way to other work on the host."""
    return [
        *("nice", "-n", "10", QEMU, "-accel", "tcg", "-cpu", CPU, "-smp", str(CPUS), "-m", str(MEMORY_MB)),
        *("-nographic", "-nodefaults", "-serial", "stdio", "-no-reboot"),
        *("-kernel", str(boot.vmlinuz), "-initrd", str(boot.initramfs), "-append", APPEND),
        *("-virtfs", f"local,path=/,mount_tag=root,readonly=on,{SHARED}"),
        *("-virtfs", f"local,path={out},mount_tag=out,{SHARED}"),
    ]


def check_qemu() -> None:
    """Raises MatrixError when there is none, or one that cannot be relied on."""
    try:
        told = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        raise MatrixError(f"start {QEMU}: {error.strerror}") from error
    check_version(told)


def check_version(told: str) -> None:
    """Of what `--version` prints. Raises MatrixError when it is too old."""
    found = re.search(r"version (\d+)\S*", told)
    if not found or int(found[1]) < OLDEST_QEMU:
        raise MatrixError(f"{QEMU} is of {found[0] if found else 'no version'}, needed is {OLDEST_QEMU}: `make kernels` installs it")


def status_in(console: str) -> int | None:
    """What init.sh says at the end."""
    found = re.search(r"^guest: end (\d+)\r?$", console, re.MULTILINE)
    return int(found[1]) if found else None
