# SPDX-License-Identifier: Apache-2.0
"""What a thread waits for, by the system call it is in: the one table. The side of BPF is bpf/shared/wait_class.h.

A wait for I/O (in_iowait) is disk whatever the call; a wait outside of any call is page: user code touched memory that was not there.
A futex is lock when what waits for it is one, else poll: condition variables, semaphores and joins wait for work (bpf/shared/futex.h).
Calls about a descriptor go by the kind of its file: regular disk, pipe pipe, socket net, eventfd and the like poll; reads of a character
device (a terminal, /dev/fuse) are poll, all else about one other. Calls with the numbers of 32-bit programs are other.
"""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt

CALLS = 512


class WaitClass(IntEnum):
    """enum wait_class in bpf/shared/thread.h."""

    OTHER = 0
    LOCK = 1
    DISK = 2
    NET = 3
    PIPE = 4
    POLL = 5
    """For work: the only one that is idle by itself."""
    SLEEP = 6
    PAGE = 7
    CHILD = 8


BY_FILE = 10
NAMES: tuple[bytes, ...] = tuple(one.name.lower().encode() for one in WaitClass)

# Numbers of x86-64: arch/x86/entry/syscalls/syscall_64.tbl.
_CALLS: Mapping[int, Mapping[str, int]] = {
    WaitClass.LOCK: {
        "flock": 73,
        "fcntl": 72,
        "semop": 65,
        "semtimedop": 220,
    },
    WaitClass.DISK: {
        "open": 2,
        "stat": 4,
        "lstat": 6,
        "msync": 26,
        "fsync": 74,
        "fdatasync": 75,
        "truncate": 76,
        "ftruncate": 77,
        "getdents": 78,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "link": 86,
        "unlink": 87,
        "sync": 162,
        "mount": 165,
        "umount2": 166,
        "readahead": 187,
        "getdents64": 217,
        "fadvise64": 221,
        "openat": 257,
        "mkdirat": 258,
        "newfstatat": 262,
        "unlinkat": 263,
        "renameat": 264,
        "sync_file_range": 277,
        "fallocate": 285,
        "syncfs": 306,
        "renameat2": 316,
        "copy_file_range": 326,
        "statx": 332,
        "openat2": 437,
    },
    WaitClass.NET: {
        "connect": 42,
        "sendto": 44,
        "recvfrom": 45,
        "sendmsg": 46,
        "recvmsg": 47,
        "shutdown": 48,
        "recvmmsg": 299,
        "sendmmsg": 307,
    },
    WaitClass.POLL: {
        "poll": 7,
        "select": 23,
        "pause": 34,
        "accept": 43,
        "msgrcv": 70,
        "rt_sigtimedwait": 128,
        "rt_sigsuspend": 130,
        "io_getevents": 208,
        "epoll_wait": 232,
        "mq_timedreceive": 243,
        "pselect6": 270,
        "ppoll": 271,
        "epoll_pwait": 281,
        "accept4": 288,
        "io_pgetevents": 333,
        "io_uring_enter": 426,
        "epoll_pwait2": 441,
    },
    WaitClass.SLEEP: {"nanosleep": 35, "clock_nanosleep": 230},
    WaitClass.PAGE: {"mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "madvise": 28, "mlock": 149},
    WaitClass.CHILD: {"clone": 56, "vfork": 58, "wait4": 61, "waitid": 247, "clone3": 435},
    BY_FILE: {
        "read": 0,
        "write": 1,
        "close": 3,
        "ioctl": 16,
        "pread64": 17,
        "pwrite64": 18,
        "readv": 19,
        "writev": 20,
        "sendfile": 40,
        "splice": 275,
        "tee": 276,
        "vmsplice": 278,
        "preadv": 295,
        "pwritev": 296,
        "preadv2": 327,
        "pwritev2": 328,
    },
}


def call_classes() -> npt.NDArray[np.uint32]:
    """The class of each system call by its number, for the BPF map `call_classes`."""
    table = np.full(CALLS, WaitClass.OTHER, np.uint32)
    for wait_class, calls in _CALLS.items():
        table[list(calls.values())] = wait_class
    return table
