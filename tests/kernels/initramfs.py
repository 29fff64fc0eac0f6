# SPDX-License-Identifier: Apache-2.0
"""Writes the first root file system of a guest: busybox, the modules, and init.sh. Format: newc of cpio(5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

DIRECTORY, PROGRAM, FILE, DEVICE = 0o040755, 0o100755, 0o100644, 0o020600
DIRECTORIES = ("bin", "dev", "proc", "sys", "modules", "lower", "upper", "root")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the archive."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def initramfs(busybox: bytes, init: bytes, modules: Mapping[str, bytes]) -> bytes:
    """The archive. Modules are named so that their names sort in the order of loading."""
    return archive(_entries(busybox, init, modules))


def archive(entries: Iterator[Entry]) -> bytes:
    """A cpio archive with these entries and a trailer."""
    packed = b"".join(_packed(entry, number) for number, entry in enumerate(entries, 1))
    return packed + _packed(Entry("TRAILER!!!", 0), 0)


def _entries(busybox: bytes, init: bytes, modules: Mapping[str, bytes]) -> Iterator[Entry]:
    for name in DIRECTORIES:
        yield Entry(name, DIRECTORY)
    yield Entry("dev/console", DEVICE, device=(5, 1))
    yield Entry("dev/null", DEVICE, device=(1, 3))
    yield Entry("bin/busybox", PROGRAM, busybox)
    yield Entry("init", PROGRAM, init)
    for number, (name, module) in enumerate(modules.items()):
        yield Entry(f"modules/{number:02}-{name}.ko", FILE, module)


def _packed(entry: Entry, number: int) -> bytes:
    """Header of 13 words in hex: inode, mode, owner, group, links, time, size, device, device it stands for, name, check."""
    name = entry.name.encode() + b"\0"
    words = (number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
    return _padded(b"070701" + b"".join(b"%08x" % word for word in words) + name) + _padded(entry.content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
