# SPDX-License-Identifier: Apache-2.0
"""Finds the file behind a mapping and opens it, never the file that lies at that path on the host.

First by /proc/PID/map_files/START-END, which is the mapped file itself whatever became of its name. Where that is not allowed or the
mapping was split meanwhile, by the path inside the process's root, accepted only when device and inode are those of the mapping.
Only regular files count; a FIFO, a device or a symbolic link is looked at and not opened.
"""

import os
import stat

from agent.process.directory import ProcessDirectory
from agent.process.openat2 import find_in_root, open_regular
from agent.records.process import Mapping

FileKey = tuple[int, int, int, int, int]
"""Device, inode, size, mtime, ctime: one content of one file. ctime because a user can set mtime back after a change."""

_DELETED = b" (deleted)"


def key_of(found: os.stat_result) -> FileKey:
    """The key of what was looked at."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def look_at(directory: ProcessDirectory, mapping: Mapping) -> os.stat_result | None:
    """What lies behind `mapping`, without opening it; None when it is no regular file or cannot be found."""
    found = directory.follow(_map_file(mapping))
    if found is None:
        path_fd = _find_by_path(directory, mapping)
        if path_fd is None:
            return None
        found = os.fstat(path_fd)
        os.close(path_fd)
    return found if stat.S_ISREG(found.st_mode) else None


def open_file(directory: ProcessDirectory, mapping: Mapping, expected: FileKey) -> int | None:
    """Open the file that look_at saw; None when it has changed since."""
    try:
        path_fd: int | None = os.open(_map_file(mapping), os.O_PATH | os.O_CLOEXEC, dir_fd=directory.fd)
    except OSError:
        path_fd = _find_by_path(directory, mapping)
    if path_fd is None:
        return None
    fd = open_regular(path_fd)
    os.close(path_fd)
    if fd is not None and key_of(os.fstat(fd)) != expected:
        os.close(fd)
        return None
    return fd


def name_of(directory: ProcessDirectory, mapping: Mapping) -> bytes:
    """The path of a mapping without the kernel's " (deleted)". A live file may be named so: it lies there under that very name."""
    if not mapping.path.endswith(_DELETED):
        return mapping.path
    path_fd = _find_by_path(directory, mapping)
    if path_fd is None:
        return mapping.path[: -len(_DELETED)]
    os.close(path_fd)
    return mapping.path


def _map_file(mapping: Mapping) -> bytes:
    return b"map_files/%x-%x" % (mapping.start, mapping.end)


def _find_by_path(directory: ProcessDirectory, mapping: Mapping) -> int | None:
    """An O_PATH descriptor, when device and inode are those of the mapping."""
    if not mapping.path.startswith(b"/"):
        return None
    try:
        root_fd = os.open(b"root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
    except OSError:
        return None
    path_fd = find_in_root(root_fd, mapping.path)
    os.close(root_fd)
    if path_fd is None:
        return None
    found = os.fstat(path_fd)
    if (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino) != (*mapping.device, mapping.inode):
        os.close(path_fd)
        return None
    return path_fd
