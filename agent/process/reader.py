# SPDX-License-Identifier: Apache-2.0
"""Reads one process from /proc: whether it still is the one that was sampled, what it maps, what it is called.

The order is: identity, content, identity again. Start time tells a reused PID, the image (exe and the addresses exec chose) tells an exec.
A process forked without exec has the maps of its parent to the byte; such maps are located once.
"""

import hashlib
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from agent.process.binaries import BinaryCache
from agent.process.directory import ProcessDirectory
from agent.process.maps import parse_maps
from agent.process.service import ServiceNames
from agent.process.start import ProcessStat, is_start
from agent.process.vdso import VDSO_PATH, binary_from_image, open_image, read_image
from agent.records.binary import Binary, BinaryId
from agent.records.process import Fate, MappedBinary, Mapping, MappingKind, ProcessKey

_MAX_MAPS_BYTES = 8 << 20
_MAX_STATM_BYTES = 256
_SNAPSHOTS_MAX = 256
_VSYSCALL_PATH = b"[vsyscall]"
_ATTEMPTS = 4
_COMPAT_END = 1 << 32
"""The vDSO of a 32-bit process lies below and is another one."""
_MEMORY_PATHS = (b"/memfd:", b"/dev/zero", b"/dev/shm/", b"/SYSV", b"/anon_hugepage")
"""Memory that has a path but no file one could name functions from, unless it is an ELF file."""


@dataclass(frozen=True, slots=True)
class Image:
    """One program image of a process; an exec makes another one."""

    exe_device: int
    exe_inode: int
    code_start: int
    stack_start: int

    @property
    def is_whole(self) -> bool:
        """False in the middle of an exec: the kernel sets the addresses last."""
        return self.code_start != 0


@dataclass(frozen=True, slots=True)
class Mapped:
    """The mappings of a process at one time."""

    digest: bytes
    """Of the raw maps."""
    fixed_pages: int
    """Pages that are neither heap nor stack: changes when a library comes or goes. -1 when unknown."""
    mappings: tuple[MappedBinary, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """What the first sight of a process gave. Without image and mappings unless it is ALIVE."""

    fate: Fate
    service: bytes = b""
    version: bytes = b""
    image: Image | None = None
    mapped: Mapped | None = None
    namespace_pid: int = 0


class ProcessReader:
    """Holds what is shared between processes: binaries, and maps of forked families."""

    def __init__(self, proc_root: Path, binaries: BinaryCache) -> None:
        self._proc_root = proc_root
        self._binaries = binaries
        self._vdso_image = read_image()
        self._vdso: Binary | None = binary_from_image(self._vdso_image)
        self._snapshots: OrderedDict[bytes, tuple[MappedBinary, ...]] = OrderedDict()
        self.malformed_lines = 0

    def first_sight(self, key: ProcessKey) -> Sight | None:
        """Read all of a process. Whatever goes wrong on the way means that it is gone. None while it is in the middle of an exec.

        When the image changes under the reading it is read again: was it really an exec, the new exec_id will show the same image.
        """
        leader = ProcessDirectory.open(self._proc_root, key.pid)
        if leader is None:
            return Sight(Fate.EXITED)
        with leader:
            stat = leader.stat()
            if stat is None or not is_start(stat, key.start_boot_ns):
                return Sight(Fate.EXITED)
            if stat.is_kernel_thread:
                return Sight(Fate.KERNEL, b"kernel")
            if not stat.is_dead:
                return self._sight(leader, stat.comm, _image(leader, stat))
            thread = leader.live_thread(self._proc_root)
            if thread is None:
                return Sight(Fate.EXITED)
            with thread:
                return self._sight(thread, stat.comm, current_image(thread))

    def open_same(self, key: ProcessKey, image: Image) -> ProcessDirectory | None:
        """The directory of a process that still runs `image`; the caller closes it."""
        directory = ProcessDirectory.open(self._proc_root, key.pid)
        stat = directory.stat() if directory is not None else None
        if directory is not None and stat is not None and is_start(stat, key.start_boot_ns):
            if stat.is_dead:
                leader, directory = directory, directory.live_thread(self._proc_root)
                os.close(leader.fd)
                stat = directory.stat() if directory is not None else None
            if directory is not None and stat is not None and _image(directory, stat) == image:
                return directory
        if directory is not None:
            os.close(directory.fd)
        return None

    def open_vdso(self, binary_id: BinaryId) -> int | None:
        """The image of the vDSO as a file in memory, which the caller closes; None for any other binary."""
        return open_image(self._vdso_image) if self._vdso is not None and self._vdso.id == binary_id else None

    def is_listed(self, pid: int) -> bool:
        """Whether there is a process of this PID, cheaply; it may be another one by now."""
        return os.access(f"{self._proc_root}/{pid}", os.F_OK)

    def is_alive(self, key: ProcessKey) -> bool:
        """Whether this very process still runs, whichever program: not one that waits to be reaped, but one without its main thread."""
        directory = ProcessDirectory.open(self._proc_root, key.pid)
        if directory is None:
            return False
        with directory:
            stat = directory.stat()
            if stat is None or not is_start(stat, key.start_boot_ns):
                return False
            if not stat.is_dead:
                return True
            thread = directory.live_thread(self._proc_root)
            if thread is None:
                return False
            with thread:
                return True

    def fixed_pages(self, pid: int) -> int:
        """Mapped.fixed_pages as it is now: one small read, to see whether maps must be read again."""
        try:
            fd = os.open(f"{self._proc_root}/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1
        try:
            fields = os.read(fd, _MAX_STATM_BYTES).split()
        except OSError:
            return -1
        finally:
            os.close(fd)
        return int(fields[0]) - int(fields[5]) if len(fields) >= 6 else -1

    def mapped(self, directory: ProcessDirectory) -> Mapped | None:
        """The mappings now; None when there are none to read (the process is exiting)."""
        fixed_pages = self.fixed_pages(directory.pid)
        raw = directory.read(b"maps", _MAX_MAPS_BYTES)
        if not raw:
            return None
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        known = self._snapshots.get(digest)
        if known is not None:
            self._snapshots.move_to_end(digest)
            return Mapped(digest, fixed_pages, known)
        parse = parse_maps(raw)
        self.malformed_lines += parse.malformed
        mappings = tuple(self._located(directory, parse.mappings))
        # An exiting process hides its files; its forked kin must not inherit that.
        if all(m.kind is not MappingKind.UNREADABLE for m in mappings):
            self._snapshots[digest] = mappings
            if len(self._snapshots) > _SNAPSHOTS_MAX:
                self._snapshots.popitem(last=False)
        return Mapped(digest, fixed_pages, mappings)

    def _sight(self, directory: ProcessDirectory, comm: bytes, image: Image | None) -> Sight | None:
        for _ in range(_ATTEMPTS):
            names = ServiceNames(directory, comm)
            mapped = self.mapped(directory)
            if image is None or mapped is None:
                return Sight(Fate.EXITED)
            image_before, image = image, current_image(directory)
            if image_before.is_whole and image_before == image:
                exe = directory.link(b"exe")
                main_binary = next((m.binary for m in mapped.mappings if m.mapping.path == exe), None)
                return Sight(Fate.ALIVE, names.service, names.version(main_binary), image, mapped, directory.namespace_pid())
        return None

    def _located(self, directory: ProcessDirectory, mappings: tuple[Mapping, ...]) -> list[MappedBinary]:
        located: list[MappedBinary] = []
        by_file: dict[tuple[tuple[int, int], int], Binary | None] = {}
        for mapping in mappings:
            kind = self._kind_without_file(mapping)
            if kind is not None:
                located.append(MappedBinary(mapping, kind, self._vdso if kind is MappingKind.VDSO else None))
                continue
            file = (mapping.device, mapping.inode)
            if file not in by_file:
                by_file[file] = self._binaries.identify(directory, mapping)
            located.append(_with_file(mapping, by_file[file]))
        return located

    def _kind_without_file(self, mapping: Mapping) -> MappingKind | None:
        """None for a mapping with a file."""
        if mapping.path == VDSO_PATH:
            is_ours = mapping.end - mapping.start == len(self._vdso_image) and mapping.start >= _COMPAT_END
            return MappingKind.VDSO if is_ours else MappingKind.UNREADABLE
        if mapping.path == _VSYSCALL_PATH:
            return MappingKind.VSYSCALL
        return None if mapping.inode else MappingKind.ANONYMOUS


def current_image(directory: ProcessDirectory) -> Image | None:
    """The image the process runs now; None when it is gone."""
    stat = directory.stat()
    return None if stat is None else _image(directory, stat)


def _image(directory: ProcessDirectory, stat: ProcessStat) -> Image:
    exe = directory.follow(b"exe")
    device, inode = (exe.st_dev, exe.st_ino) if exe is not None else (0, 0)
    return Image(device, inode, stat.code_start, stat.stack_start)


def _with_file(mapping: Mapping, binary: Binary | None) -> MappedBinary:
    if binary is None:
        return MappedBinary(mapping, MappingKind.UNREADABLE, None)
    if not binary.segments and mapping.path.startswith(_MEMORY_PATHS):
        return MappedBinary(mapping, MappingKind.ANONYMOUS, None)
    return MappedBinary(mapping, MappingKind.FILE, binary)
