# SPDX-License-Identifier: Apache-2.0
"""Has unwind tables made by jailed processes (decode_child.py), and takes what they say for hostile.

The child that forks them is started ahead, for that costs 0.3 s, and goes by itself after a time without work.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

from agent.jail import NOBODY
from agent.records.unwind import TableMiss
from agent.unwind.decode_child import ANSWER, ChildExit
from agent.unwind.table_file import MAX_PACKED_BYTES, pack_miss

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
"""For one file, by the clock; the CPU time of its process is bounded by itself."""
_PROGRAM = (sys.executable, "-I", "-m", "agent.unwind.decode_child")
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_END_S = 5.0


class Decoder:
    """For one thread."""

    def __init__(self, timeout_s: float = TIMEOUT_S, program: Sequence[str] = _PROGRAM) -> None:
        self._timeout_s = timeout_s
        self._program = program
        self._child: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Have a child ready, so that the next file need not wait for it. Failure shows at the next file."""
        if self._child is not None and self._child.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(self._timeout_s)
        command = [*self._program, str(theirs.fileno()), str(NOBODY), str(NOBODY)]
        null = subprocess.DEVNULL
        try:
            self._child = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=null,
                stdout=null,
                stderr=null,
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
            self._control = ours
        except OSError as error:
            ours.close()
            log.warning("unwind decoder cannot be started error=%s", error)
        finally:
            theirs.close()

    def decode(self, source: int, digest: bytes) -> bytes:
        """The packed table of the file behind a descriptor, or the packed reason; not checked. Blocks until it is there."""
        try:
            target = os.memfd_create("unwind-table", os.MFD_CLOEXEC)
        except OSError:
            return pack_miss(TableMiss.FAILED, digest)
        try:
            miss = self._ask(source, target, digest)
            return pack_miss(miss, digest) if miss is not None else os.pread(target, MAX_PACKED_BYTES, 0)
        finally:
            os.close(target)

    def close(self) -> None:
        """End the child, and what it has forked."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._child is not None:
            if self._child.poll() is None:
                os.killpg(self._child.pid, signal.SIGKILL)
            try:
                self._child.wait(_END_S)
            except subprocess.TimeoutExpired:
                log.warning("unwind decoder does not end pid=%d", self._child.pid)
            self._child = None

    def _ask(self, source: int, target: int, digest: bytes) -> TableMiss | None:
        """Have the table written to `target`; why not, otherwise."""
        for _ in range(2):  # The child may go for want of work at the moment it is asked.
            self.start()
            if self._control is None:
                return TableMiss.FAILED
            try:
                socket.send_fds(self._control, [digest], [source, target])
                answer = self._control.recv(ANSWER.size)
            except TimeoutError:
                self.close()
                return TableMiss.FAILED
            except OSError:
                answer = b""
            if len(answer) == ANSWER.size:
                return _miss(ANSWER.unpack(answer)[0])
            self.close()
        return TableMiss.FAILED


def _miss(status: int) -> TableMiss | None:
    """What it means how the process of a file ended."""
    if status == ChildExit.DONE:
        return None
    if status == -signal.SIGXCPU:
        return TableMiss.TOO_LARGE
    # Any other process may be killed because the host has no memory left: that is no fault of the file.
    return TableMiss.FAILED if status in (ChildExit.JAIL, -signal.SIGKILL, -signal.SIGTERM) else TableMiss.MALFORMED
