# SPDX-License-Identifier: Apache-2.0
"""Names are numbered once and keep their numbers."""

from dataclasses import replace

import numpy as np

from emberwatch.v1 import marks_pb2
from server.profile.names import CodeKind
from server.profile.nametable import NameTable, PathFlag, mark_flags
from tests.server.profile.trees import functions


def test_same_name_and_binary_is_one_number() -> None:
    table = NameTable()
    assert table.intern(functions(["a", "b", "a"])).tolist() == [1, 2, 1]
    assert table.intern(functions(["b", "c"])).tolist() == [2, 3]


def test_same_name_in_another_binary_is_another() -> None:
    table = NameTable()
    table.intern(functions(["a"], binary="app"))
    assert table.intern(functions(["a"], binary="libc.so.6")).tolist() == [2]


def test_a_thread_or_function_called_like_a_mark_is_not_the_mark() -> None:
    table = NameTable()
    mark = int(table.intern(functions(["[truncated]"], [CodeKind.MARK], ""))[0])
    function = int(table.intern(functions(["[truncated]"], [CodeKind.NATIVE], ""))[0])
    assert len({mark, function, table.label("[truncated]")}) == 3


def test_ranks_order_by_name_then_binary() -> None:
    table = NameTable()
    table.intern(functions(["b", "a"], binary="z"))
    table.intern(functions(["b"], binary="y"))
    assert table.ranks().tolist() == [0, 3, 1, 2]  # "", b@z, a@z, b@y


def test_builds_grow_with_the_function_and_move_with_it() -> None:
    table, other = NameTable(), NameTable()
    for builds in (("aa",), ("aa", "bb")):
        table.intern(replace(functions(["f", "g"]), builds=[builds]))
    assert table.builds == {1: ("aa", "bb")}
    other.intern(replace(functions(["g", "f"]), builds=[("cc",), ("cc",)]))
    assert (other.adopt(table, [1]), other.builds) == ([2], {1: ("cc",), 2: ("cc", "aa", "bb")})


def test_unnamed_functions_are_flagged() -> None:
    table = NameTable()
    number = table.intern(functions(["[unknown] app+0x10"]))[0]
    assert table.flags[number] == PathFlag.UNNAMED


def test_marks_say_what_a_stack_lacks() -> None:
    marks = [
        marks_pb2.MARK_TRUNCATED,
        marks_pb2.MARK_STACK_LOST_ENOMEM,
        marks_pb2.MARK_EXITED,
        marks_pb2.MARK_VSYSCALL,
        2**40,
        marks_pb2.MARK_KERNEL_HIDDEN,
    ]
    expected = [PathFlag.TRUNCATED, PathFlag.STACK_LOST, PathFlag.UNKNOWN, 0, PathFlag.UNKNOWN, PathFlag.UNNAMED | PathFlag.KERNEL_HIDDEN]
    assert mark_flags(np.array(marks, np.uint64)).tolist() == expected


def test_every_mark_of_the_proto_has_been_thought_of() -> None:
    thought_of = 22
    assert max(marks_pb2.Mark.values()) == thought_of
