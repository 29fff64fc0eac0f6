# SPDX-License-Identifier: Apache-2.0
"""openat2(2): opens a path inside the root of another process, without stepping out of it and without waking what lies there.

Python has no wrapper. RESOLVE_IN_ROOT makes absolute symbolic links and ".." stay inside; the file is opened O_PATH first, so that a FIFO
or a device is looked at and never opened. Linux 5.6.
"""

import ctypes
import functools
import os
import stat
from collections.abc import Callable

_NUMBER = 437
"""The same on every architecture."""
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def find_in_root(root_fd: int, path: bytes) -> int | None:
    """An O_PATH descriptor of `path` seen from the directory `root_fd`; the last part of the path is not followed."""
    how = _OpenHow(os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _RESOLVE_NO_MAGICLINKS | _RESOLVE_IN_ROOT)
    fd = int(_syscall()(_NUMBER, root_fd, ctypes.c_char_p(path), ctypes.byref(how), ctypes.sizeof(how)))
    return fd if fd >= 0 else None


def open_regular(path_fd: int) -> int | None:
    """Open for reading what an O_PATH descriptor stands for, if it is a regular file; `path_fd` stays open."""
    try:
        if not stat.S_ISREG(os.fstat(path_fd).st_mode):
            return None
        return os.open(f"/proc/self/fd/{path_fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


@functools.cache
def _syscall() -> Callable[..., int]:
    syscall: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    return syscall
