# SPDX-License-Identifier: Apache-2.0
"""Gives up what a process that reads hostile files could be misused for. Only the standard library; called once, in a child."""

import os
import resource
from dataclasses import dataclass

NOBODY = 65534
_PR_SET_NO_NEW_PRIVS = 38


@dataclass(frozen=True, slots=True)
class JailLimits:
    """What a child may use from now on. It can open nothing and start nothing."""

    memory_bytes: int
    """Of address space."""
    cpu_s: int
    """Then SIGXCPU ends it."""
    file_bytes: int
    """Of each file it writes."""


def enter_jail(uid: int, gid: int, limits: JailLimits) -> None:
    """Give up rights and set limits. Raises OSError or ValueError; then nothing hostile may be read.

    Everything that will be imported must be imported before.
    """
    drop_rights(uid, gid)
    set_limits(limits)


def drop_rights(uid: int, gid: int) -> None:
    """Become `uid` and `gid` when root, for good. Raises OSError."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def set_limits(limits: JailLimits) -> None:
    """Set the limits, for good. Raises OSError or ValueError."""
    # At the hard limit comes SIGKILL, which could as well mean that the host is out of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    for limit, value in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
