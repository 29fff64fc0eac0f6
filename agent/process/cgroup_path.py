# SPDX-License-Identifier: Apache-2.0
"""Finds the path of a cgroup by its id, for processes that are gone: their /proc/PID/cgroup is gone too.

The id is the handle of its folder (kernfs, Linux 5.5), which open_by_handle_at(2) opens; Python has no wrapper.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path

PLACES = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
"""Where the unified hierarchy is mounted by custom; the second beside version 1."""
_CONTROLLERS = "cgroup.controllers"
_KERNFS_HANDLE = 0xFE
"""FILEID_KERNFS of include/linux/exportfs.h."""


class _FileHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint32), ("type", ctypes.c_int32), ("id", ctypes.c_uint64)]


class CgroupPaths:
    """Asks the kernel; nothing is kept but an open folder."""

    def __init__(self, places: tuple[Path, ...] = PLACES) -> None:
        self._root = next((place for place in places if (place / _CONTROLLERS).exists()), None)

    def path(self, cgroup_id: int) -> bytes:
        """As /proc/PID/cgroup has it, from the root of the hierarchy; b"" when it is gone, or cannot be found (not root)."""
        if self._root is None:
            return b""
        try:
            mount = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            handle = _FileHandle(ctypes.sizeof(ctypes.c_uint64), _KERNFS_HANDLE, cgroup_id)
            folder = _open_by_handle()(mount, ctypes.byref(handle), os.O_PATH | os.O_CLOEXEC)
        finally:
            os.close(mount)
        if folder < 0:
            return b""
        try:
            return bytes(Path(f"/proc/self/fd/{folder}").readlink()).removeprefix(bytes(self._root)) or b"/"
        except OSError:
            return b""
        finally:
            os.close(folder)


@functools.cache
def _open_by_handle() -> Callable[..., int]:
    function: Callable[..., int] = ctypes.CDLL(None, use_errno=True).open_by_handle_at
    return function
