# SPDX-License-Identifier: Apache-2.0
"""What ends a run: SIGINT, SIGTERM, or the end of the parent that asked to be told when sampling has begun."""

import contextlib
import json
import os
import select
import signal
import socket
from types import FrameType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Lifeline:
    """Waits together with other descriptors, so that the main loop sleeps in one place. Use as a context manager, in the main thread."""

    def __init__(self, parent: int) -> None:
        """`parent` is a socket to the parent, or -1."""
        self._parent = parent
        self._is_over = False

    def __enter__(self) -> Self:
        self._ours, self._theirs = socket.socketpair()
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._before = [signal.signal(number, _ignore) for number in _SIGNALS]
        self._wakeup_before = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._ours, select.POLLIN)
        if self._parent >= 0:
            self._poll.register(self._parent, select.POLLHUP | select.POLLRDHUP)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
        self._ours.close()
        self._theirs.close()

    @property
    def is_over(self) -> bool:
        """True once the run shall end."""
        return self._is_over

    def watch(self, descriptor: int) -> None:
        """Wake also when `descriptor` is readable."""
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until something happens or the time is over; True when a watched descriptor is readable."""
        is_readable = False
        for descriptor, event in self._poll.poll(max(0.0, timeout_s) * 1000):
            if descriptor in (self._ours.fileno(), self._parent):
                self._is_over = True
                if event & select.POLLIN and descriptor == self._ours.fileno():
                    with contextlib.suppress(BlockingIOError):
                        self._ours.recv(4096)
            else:
                is_readable = True
        return is_readable

    def say_ready(self, **facts: str | int) -> None:
        """Tell the parent that sampling has begun."""
        if self._parent >= 0:
            with contextlib.suppress(BrokenPipeError):  # The parent is gone: the next wait says so.
                os.write(self._parent, json.dumps(facts).encode() + b"\n")


def _ignore(_: int, __: FrameType | None) -> None:
    """The number of the signal goes to the wakeup descriptor."""
