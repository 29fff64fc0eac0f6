# SPDX-License-Identifier: Apache-2.0
"""Names of kernel addresses."""

import numpy as np

from agent.kernel.symbol_names import names_in, symbol_names

TEXT = b"""ffffffff81000000 T _text
ffffffff81000100 t do_unlinkat
ffffffff81000100 T do_unlinkat_alias
ffffffff81000200 t __traceiter_sched_switch
ffffffff81000240 t __traceiter_sched_waking
ffffffff81000280 t sched_tick
ffffffff82000040 D cgroup_mutex
ffffffff82000080 b table_locks
ffffffffc0000000 t helper\t[module]
"""


def names(*addresses: int) -> list[bytes]:
    return list(names_in(TEXT, np.array(addresses, np.uint64)).names)


def test_code_is_named_by_its_function_and_data_by_its_place() -> None:
    assert names(0xFFFFFFFF81000123, 0xFFFFFFFF82000040, 0xFFFFFFFF82000098, 0xFFFFFFFFC0000010) == [
        b"do_unlinkat_alias",  # of two at one address always the same, whatever their order in the file
        b"cgroup_mutex",
        b"table_locks+0x18",
        b"helper",
    ]


def test_what_lies_before_all_or_far_behind_has_no_name() -> None:
    assert names(0x1000, 0xFFFFFFFF83000000) == [b"", b""]


def test_where_data_lies() -> None:
    found = names_in(TEXT, np.zeros(0, np.uint64))
    assert (found.data_start, found.data_end) == (0xFFFFFFFF82000040, 0xFFFFFFFF82000081)
    assert names_in(b"", np.zeros(0, np.uint64)).data_end == 0


def test_what_calls_the_programs_of_a_tracepoint() -> None:
    found = names_in(TEXT, np.zeros(0, np.uint64))
    assert found.tracing == ((0xFFFFFFFF81000200, 0xFFFFFFFF81000240), (0xFFFFFFFF81000240, 0xFFFFFFFF81000280))


def test_the_child_answers_for_each_address() -> None:
    found = symbol_names([0, 1])
    assert found.names == (b"", b"")
    assert all(start < end for start, end in found.tracing)
