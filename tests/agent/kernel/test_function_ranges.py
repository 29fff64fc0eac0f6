# SPDX-License-Identifier: Apache-2.0
"""Functions of the kernel are found by name, system calls by theirs, in all the pieces that the compiler made of them."""

from pathlib import Path

import pytest

from agent.kernel.function_ranges import function_ranges, ranges_in
from agent.kernel.kallsyms import read_kallsyms

RAW = b"""ffffffff81000000 T _text
ffffffff81000100 t ep_poll
ffffffff81000180 t ep_poll.cold
ffffffff81000200 T __x64_sys_recvfrom
ffffffff81000260 T __ia32_sys_recvfrom
ffffffff81000300 D ep_poll_data
ffffffff81000400 t recvfromage
0000000000000000 A recvfrom
ffffffffc0000000 t ep_poll.isra.0\t[module]
"""
BASE = 0xFFFF_FFFF_8100_0000


def test_pieces_end_where_the_next_code_begins() -> None:
    found = [(name, start - BASE, end - BASE) for name, start, end in ranges_in(RAW, [b"ep_poll"])]
    assert found[:2] == [(b"ep_poll", 0x100, 0x180), (b"ep_poll", 0x180, 0x200)]
    assert found[2][1:] == (0xFFFF_FFFF_C000_0000 - BASE, 0xFFFF_FFFF_C000_0000 - BASE + (1 << 20))  # the last there is


def test_call_goes_by_its_own_name_for_callers_of_32_bits_too() -> None:
    assert [start - BASE for _, start, _ in ranges_in(RAW, {b"recvfrom"})] == [0x200, 0x260]


def test_nothing_asked_for_starts_no_child() -> None:
    assert function_ranges(()) == {}


def test_names_of_this_kernel() -> None:
    kallsyms = read_kallsyms(Path("/proc/kallsyms"))
    if kallsyms.is_hidden:
        pytest.skip("this kernel hides its addresses")
    found = function_ranges(["nanosleep", "there_is_no_such_function"])
    assert found[b"there_is_no_such_function"] == ()
    assert all(start < end for start, end in found[b"nanosleep"])
    assert found[b"nanosleep"]
