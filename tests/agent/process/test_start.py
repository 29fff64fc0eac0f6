# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of /proc/PID/stat."""

import ctypes
import os
import signal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.process.start import is_start, parse_stat

# pid (comm) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime priority nice threads
# itrealvalue starttime vsize rss rsslim startcode endcode startstack
LINE = b"27401 (%s) S 1 2 3 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 89383 3133440 407 184467 4096 8192 12288 0 0\n"


def test_a_name_with_brackets_and_newlines_does_not_shift_fields() -> None:
    stat = parse_stat(LINE % b") S 1 (x\n) R")
    assert stat is not None
    assert (stat.comm, stat.state, stat.start_ticks, stat.code_start, stat.stack_start) == (b") S 1 (x\n) R", b"S", 89383, 4096, 12288)


def test_start_is_compared_in_whole_ticks() -> None:
    stat = parse_stat(LINE % b"x")
    assert stat is not None
    assert is_start(stat, 893_830_000_000)
    assert is_start(stat, 893_839_999_999)
    assert not is_start(stat, 893_840_000_000)
    assert not is_start(stat, 893_829_999_999)


def test_kernel_threads_and_the_dead_are_told() -> None:
    user = parse_stat(LINE % b"kworker/0:1")  # flags 0x400000; the name alone proves nothing
    assert user is not None and not user.is_kernel_thread
    kernel = parse_stat((LINE % b"kworker/0:1").replace(b"4194304", b"69238880"))  # flags 0x4208060, PF_KTHREAD 0x200000 among them
    assert kernel is not None and kernel.is_kernel_thread
    zombie = parse_stat((LINE % b"x").replace(b" S ", b" Z "))
    assert zombie is not None and zombie.is_dead


def test_cut_lines_are_none() -> None:
    for end in range(60):
        assert parse_stat((LINE % b"x")[:end]) is None


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    parse_stat(raw)


def test_a_thread_named_like_a_stat_line_is_read_right() -> None:
    libc = ctypes.CDLL(None)
    child = os.fork()
    if child == 0:
        libc.prctl(15, b") S 1 (x", 0, 0, 0)  # PR_SET_NAME
        signal.pause()
    try:
        path = Path(f"/proc/{child}/stat")
        while b") S 1 (x" not in (raw := path.read_bytes()):
            pass
        stat = parse_stat(raw)
        assert stat is not None
        assert stat.comm == b") S 1 (x"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
