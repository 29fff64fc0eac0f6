# SPDX-License-Identifier: Apache-2.0
"""The key of a row as BPF writes it: error codes keep their sign, whatever width they are read with elsewhere."""

import struct

import numpy as np
import pytest

from agent.records.drain import CPU_KEY, STACK_MAP_FULL


def key_bytes(user_error: int, kernel_error: int) -> bytes:
    return struct.pack(
        "<QQQIIHHI16s",
        7,  # start_boot_ns
        0,  # user_stack
        23,  # kernel_stack
        4242,  # pid
        5,  # exec_id
        user_error & 0xFFFF,  # s16
        kernel_error & 0xFFFF,  # s16
        0,  # is_kernel_thread
        b"worker",  # comm
    )


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (18446744073709551599, -17),  # EEXIST as u64
        (4294967282, -14),  # EFAULT as u32
        (4294967284, -12),  # ENOMEM as u32
        (-1000, STACK_MAP_FULL),
    ],
)
def test_error_codes_are_signed(returned: int, error: int) -> None:
    (key,) = np.frombuffer(key_bytes(returned, 0), CPU_KEY)
    assert (key["user_error"], key["kernel_error"]) == (error, 0)
    (key,) = np.frombuffer(key_bytes(0, returned), CPU_KEY)
    assert (key["user_error"], key["kernel_error"]) == (0, error)


def test_a_key_has_no_holes() -> None:
    (key,) = np.frombuffer(key_bytes(0, 0), CPU_KEY)
    assert CPU_KEY.itemsize == 56
    assert (key["start_boot_ns"], key["kernel_stack"], key["pid"], key["exec_id"], key["comm"]) == (7, 23, 4242, 5, b"worker")
