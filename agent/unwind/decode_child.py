# SPDX-License-Identifier: Apache-2.0
"""Makes unwind tables of files; runs alone, jailed, started by decoder.py.

    python -I -m agent.unwind.decode_child UID GID SOURCE_FD:TARGET_FD:DIGEST ...

Each target gets a packed table, or the packed reason why there is none. What a file does beyond that (it takes too long, too much memory,
or crashes numpy) ends the child: its target and those behind it stay empty.
"""

import os
import resource
import sys
from enum import IntEnum

import numpy.ma  # noqa: F401 (np.unique imports it at its first call, when nothing can be opened any more)

from agent.jail import JailLimits, enter_jail
from agent.records.unwind import TableMiss
from agent.unwind.eh_frame import DecodeRefused, find_eh_frame
from agent.unwind.lockstep import decode
from agent.unwind.table_file import MAX_PACKED_BYTES, TableError, pack_miss, pack_table

MAX_FILES = 16
CPU_S = 10
"""For each file."""
MEMORY_BYTES = 1 << 30


class ChildExit(IntEnum):
    """Exit status of the child."""

    DONE = 0
    JAIL = 15
    """The limits could not be set, so nothing was read."""


def packed_table_of(source: int, digest: bytes) -> bytes:
    """The packed table of the file behind a descriptor, or the packed reason."""
    try:
        return pack_table(decode(find_eh_frame(lambda offset, size: _read(source, offset, size))), digest)
    except DecodeRefused as refused:
        return pack_miss(refused.miss, digest)
    except (MemoryError, TableError):
        return pack_miss(TableMiss.TOO_LARGE, digest)


def _read(source: int, offset: int, size_bytes: int) -> bytes:
    pieces = []
    while size_bytes:
        try:
            piece = os.pread(source, size_bytes, offset)
        except (OSError, OverflowError) as error:
            raise DecodeRefused(TableMiss.UNREADABLE, f"pread of {size_bytes} bytes at {offset}") from error
        if not piece:
            break
        pieces.append(piece)
        offset, size_bytes = offset + len(piece), size_bytes - len(piece)
    return b"".join(pieces)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def main(arguments: list[str]) -> int:
    """The child: the user and group to become when started as root, then the files."""
    uid, gid = int(arguments[0]), int(arguments[1])
    jobs = [argument.split(":") for argument in arguments[2 : 2 + MAX_FILES]]
    try:
        enter_jail(uid, gid, JailLimits(MEMORY_BYTES, CPU_S * len(jobs), MAX_PACKED_BYTES))
    except (OSError, ValueError):
        return ChildExit.JAIL
    most_s = resource.getrlimit(resource.RLIMIT_CPU)[1]
    for source, target, digest in jobs:
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (min(most_s, int(used.ru_utime + used.ru_stime) + CPU_S), most_s))
        _write(int(target), packed_table_of(int(source), bytes.fromhex(digest)))
    return ChildExit.DONE


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
