# SPDX-License-Identifier: Apache-2.0
"""Numbers become names by the table of the caller's kind, errors by their names."""

import re
from pathlib import Path

import pytest

from agent.profilers.syscall_names import COMPAT, ERROR_SHIFT, UNKNOWN_NUMBER, call_name, object_name, waiting_calls

HEADERS = Path("/usr/include/x86_64-linux-gnu/asm")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (0, b"read"),
        (39, b"getpid"),
        (257, b"openat"),
        (435, b"clone3"),
        (COMPAT | 20, b"getpid"),
        (COMPAT | 0, b"restart_syscall"),
        (COMPAT | 435, b"clone3"),
        (599, b"syscall_599"),
        (COMPAT | 39, b"mkdir"),
        (UNKNOWN_NUMBER, b"unknown"),
    ],
)
def test_call_has_the_name_of_its_table(call: int, name: bytes) -> None:
    assert call_name(call) == name


@pytest.mark.parametrize(("error", "name"), [(0, b"openat"), (2, b"openat:ENOENT"), (512, b"openat:ERESTARTSYS"), (4000, b"openat:4000")])
def test_error_stands_behind_the_name(error: int, name: bytes) -> None:
    assert object_name(error << ERROR_SHIFT | 257) == name


def test_waiting_calls_are_of_both_tables() -> None:
    assert {call_name(call) for call in waiting_calls()} >= {b"futex", b"epoll_wait", b"nanosleep", b"waitpid", b"_newselect"}
    assert {202, COMPAT | 240} <= set(waiting_calls())  # futex


@pytest.mark.parametrize(("header", "kind"), [("unistd_64.h", 0), ("unistd_32.h", COMPAT)])
def test_names_are_those_of_the_system_headers(header: str, kind: int) -> None:
    if not (HEADERS / header).exists():
        pytest.skip(f"needs {HEADERS / header}: apt-get install linux-libc-dev")
    listed = re.findall(r"#define __NR_(\w+) (\d+)", (HEADERS / header).read_text())
    # Calls newer than our tables go by their numbers.
    strange = {
        (name, number) for name, number in listed if call_name(int(number) | kind) not in (name.encode(), f"syscall_{number}".encode())
    }
    assert len(listed) > 300
    assert strange == set()
