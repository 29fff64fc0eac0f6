# SPDX-License-Identifier: Apache-2.0
"""The table of kernel symbols: what is found in it, and what is not."""

import os

import numpy as np
import pytest

from agent.kernel.symbol_table import HEADER, SymbolTable, table_from_kallsyms

TEXT = b"""ffffffff81000000 T _text
ffffffff81000100 T do_unlinkat_alias
ffffffff81000100 t do_unlinkat
ffffffff81000200 t __traceiter_sched_switch
ffffffff81000240 t __traceiter_sched_waking
ffffffff81000280 t sched_tick
ffffffff82000040 D cgroup_mutex
ffffffff82000080 b table_locks
0000000000000000 A hidden
ffffffffc0000000 t helper\t[module]
ffffffffc0000f00 t last_of_module\t[module]
ffffffffc0002000 t bpf_prog_0123456789abcdef_name\t[bpf]
ffffffffc0004000 t other\t[second]
"""


def table(content: bytes) -> SymbolTable:
    descriptor = os.memfd_create("table")
    try:
        os.write(descriptor, content)
        return SymbolTable(descriptor)
    finally:
        os.close(descriptor)


def names(*addresses: int, is_image_only: bool = False) -> list[bytes]:
    return table(table_from_kallsyms(TEXT)).names(np.array(addresses, np.uint64), is_image_only=is_image_only)


def test_code_is_named_by_its_function_and_data_by_its_place() -> None:
    assert names(0xFFFFFFFF81000123, 0xFFFFFFFF82000040, 0xFFFFFFFF82000098, 0xFFFFFFFFC0000010) == [
        b"do_unlinkat_alias",  # of two at one address always the same, whatever their order in the file
        b"cgroup_mutex",
        b"table_locks+0x18",
        b"helper",
    ]


def test_what_lies_before_all_or_far_behind_has_no_name() -> None:
    assert names(0, 0x1000, 0xFFFFFFFF83000000) == [b"", b"", b""]


def test_behind_the_last_page_of_a_module_nobody_is_known() -> None:
    """Programs may come there at any time; neither they nor what comes after them has the name of the module's last function."""
    assert names(0xFFFFFFFFC0000FFF, 0xFFFFFFFFC0001000, 0xFFFFFFFFC0002010, 0xFFFFFFFFC0004010) == [b"last_of_module", b"", b"", b"other"]


def test_modules_that_have_changed_have_no_names() -> None:
    assert names(0xFFFFFFFF81000123, 0xFFFFFFFFC0000010, is_image_only=True) == [b"do_unlinkat_alias", b""]


def test_where_data_lies_and_what_calls_the_programs_of_a_tracepoint() -> None:
    found = table(table_from_kallsyms(TEXT))
    assert (found.data_start, found.data_end) == (0xFFFFFFFF82000040, 0xFFFFFFFF82000081)
    assert found.tracing.tolist() == [[0xFFFFFFFF81000200, 0xFFFFFFFF81000240], [0xFFFFFFFF81000240, 0xFFFFFFFF81000280]]


def test_without_symbols_nothing_has_a_name() -> None:
    found = table(table_from_kallsyms(b""))
    assert found.names(np.array([0, 7], np.uint64)) == [b"", b""]
    assert (found.data_start, found.data_end, len(found.tracing)) == (0, 0, 0)


@pytest.mark.parametrize("content", [b"", b"x" * HEADER.size, table_from_kallsyms(TEXT)[:-1], table_from_kallsyms(TEXT) + b"x"])
def test_a_file_that_is_no_whole_table_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="table"):
        table(content)
