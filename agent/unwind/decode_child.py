# SPDX-License-Identifier: Apache-2.0
"""Makes unwind tables of files, each in a jailed process of its own; started by decoder.py.

    python -I -m agent.unwind.decode_child CONTROL_FD UID GID

This process has given up its rights, holds numpy ready, and looks at no file: for each request (one message: digest of the binary; with
it two descriptors, source and target) it forks a process that is limited as well, makes the table and ends. The target gets the packed
table, or the packed reason why there is none; the answer (one message: i32) is how that process ended. What a file does to it (too much
time or memory, a crash in numpy) ends with it. Without requests for IDLE_S, or without its agent, this process ends too.
"""

import os
import socket
import struct
import sys
from enum import IntEnum

import numpy.ma  # noqa: F401 (np.unique imports it at its first call, when nothing can be opened any more)

from agent.jail import JailLimits, drop_rights, set_limits
from agent.records.unwind import TableMiss
from agent.unwind.eh_frame import DecodeRefused, find_eh_frame
from agent.unwind.lockstep import decode
from agent.unwind.plt import with_plts
from agent.unwind.table_file import DIGEST_BYTES, MAX_PACKED_BYTES, TableError, pack_miss, pack_table

IDLE_S = 60.0
_NICE = 5
"""The profiled host comes first."""
ANSWER = struct.Struct("<i")
_LIMITS = JailLimits(memory_bytes=1 << 30, cpu_s=10, file_bytes=MAX_PACKED_BYTES)


class ChildExit(IntEnum):
    """How the process of one file ended, beside signals, which are negative."""

    DONE = 0
    CRASHED = 1
    """By an exception: the file met a fault of ours."""
    JAIL = 15
    """The limits could not be set, so nothing was read."""


def packed_table_of(source: int, digest: bytes) -> bytes:
    """The packed table of the file behind a descriptor, or the packed reason."""
    try:
        frame = find_eh_frame(lambda offset, size: _read(source, offset, size))
        return pack_table(with_plts(decode(frame), frame.plts), digest)
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


def _decode_apart(source: int, target: int, digest: bytes) -> int:
    """Make one table in a process of its own; how it ended, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        status = ChildExit.CRASHED
        try:
            status = _decode_jailed(source, target, digest)
        finally:
            os._exit(status)  # Whatever was raised: nothing else of this process may run here.
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _decode_jailed(source: int, target: int, digest: bytes) -> ChildExit:
    try:
        set_limits(_LIMITS)
    except (OSError, ValueError):
        return ChildExit.JAIL
    data = packed_table_of(source, digest)
    while data:
        data = data[os.write(target, data) :]
    return ChildExit.DONE


def main(arguments: list[str]) -> int:
    """Serve until nobody asks; 0, or ChildExit.JAIL when the rights could not be given up."""
    control, uid, gid = (int(argument) for argument in arguments)
    try:
        os.nice(_NICE)
        drop_rights(uid, gid)
    except OSError:
        return ChildExit.JAIL
    with socket.socket(fileno=control) as requests:
        requests.settimeout(IDLE_S)
        while True:
            try:
                digest, descriptors, _, _ = socket.recv_fds(requests, DIGEST_BYTES, 2)
                if len(descriptors) != 2:
                    return ChildExit.DONE  # The agent has closed the socket.
                requests.sendall(ANSWER.pack(_decode_apart(descriptors[0], descriptors[1], digest)))
            except OSError:
                return ChildExit.DONE  # Idle for too long, or the agent is gone.
            for descriptor in descriptors:
                os.close(descriptor)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
