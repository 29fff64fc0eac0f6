# SPDX-License-Identifier: Apache-2.0
"""Opens regular files inside a directory and never outside of it, whatever links stand on the way.

The kernel itself keeps the look-up inside: openat2(2) with RESOLVE_IN_ROOT reads absolute links and `..` as if the directory were `/`.
Where that call is missing (before Linux 5.6, or filtered) every part of the path is opened without following links at all.
"""

import ctypes
import errno
import os
import stat
import struct
from pathlib import Path, PurePosixPath

OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
LOOK_FLAGS = os.O_PATH | os.O_CLOEXEC
"""Names a file without opening it: opening alone starts a watchdog, rewinds a tape, takes the other end of a FIFO."""
SYS_OPENAT2 = 437
"""The same number on every architecture (include/uapi/asm-generic/unistd.h)."""
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
_OPEN_HOW = struct.Struct("<QQQ")  # flags, mode, resolve
_UNAVAILABLE = (errno.ENOSYS, errno.EPERM, errno.EINVAL)


def open_in_root(root: Path, relative: PurePosixPath) -> int | None:
    """A descriptor of the regular file ROOT/RELATIVE; None when there is none inside, for whatever reason."""
    name = os.fsencode(relative).lstrip(b"/")
    if not name or b"\0" in name:
        return None
    try:
        directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        descriptor: int | None = _openat2(directory, name)
    except OSError as error:
        if error.errno not in _UNAVAILABLE:
            return None
        descriptor = open_without_links(directory, name)
    finally:
        os.close(directory)
    return None if descriptor is None else regular_only(descriptor)


def open_regular(path: Path) -> int | None:
    """A descriptor of a regular file anywhere; None when it is none, or cannot be read."""
    try:
        return regular_only(os.open(path, LOOK_FLAGS))
    except OSError:
        return None


def regular_only(looked_at: int) -> int | None:
    """Open for reading what a descriptor of LOOK_FLAGS names, when it is a regular file; the descriptor given is closed."""
    try:
        if not stat.S_ISREG(os.fstat(looked_at).st_mode):
            return None
        return os.open(f"/proc/self/fd/{looked_at}", OPEN_FLAGS)
    except OSError:
        return None
    finally:
        os.close(looked_at)


def open_without_links(directory: int, name: bytes) -> int | None:
    """Look at NAME below the directory part by part (LOOK_FLAGS); None when a part is a link, `..`, or missing."""
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if not parts or b".." in parts:
        return None
    current = os.dup(directory)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = below
        return os.open(parts[-1], LOOK_FLAGS | os.O_NOFOLLOW, dir_fd=current)
    except OSError:
        return None
    finally:
        os.close(current)


def _openat2(directory: int, name: bytes) -> int:
    how = _OPEN_HOW.pack(LOOK_FLAGS, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
    call = ctypes.CDLL(None, use_errno=True).syscall
    descriptor: int = call(
        ctypes.c_long(SYS_OPENAT2), ctypes.c_int(directory), ctypes.c_char_p(name), ctypes.c_char_p(how), ctypes.c_size_t(len(how))
    )
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "openat2")
    return descriptor
