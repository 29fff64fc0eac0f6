# SPDX-License-Identifier: Apache-2.0
"""pprof files as stacks: inlined frames, kernel, locations without names; what is cut off or hostile is told."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.errors import BadRequest
from server.interop.folded import FoldedStack, Frame, import_text
from server.interop.pprof import is_pprof, read_pprof
from tests.server.interop.profiles import message, packed, pprof_of

STACKS = [(["main", "net/http.(*liveSwitchReader).Read"], 7), (["main", "foo(int, int)"], 23), (["main"], 0)]


def test_stacks_are_outermost_first_and_those_without_a_value_left_out() -> None:
    expected = [
        FoldedStack("", (Frame("main"), Frame("net/http.(*liveSwitchReader).Read")), 7),
        FoldedStack("", (Frame("main"), Frame("foo(int, int)")), 23),
    ]
    assert read_pprof(pprof_of(STACKS)) == read_pprof(gzip.compress(pprof_of(STACKS))) == expected


def test_inlined_functions_are_frames_and_the_kernel_is_known() -> None:
    body = message(
        (1, message((1, 1), (2, 2))),
        (2, message((1, 2), (1, 1), (2, 5))),  # not packed: location 2 is the leaf
        (3, message((1, 1), (5, 5))),  # mapping 1: [kernel.kallsyms]
        (3, message((1, 2), (5, 6))),  # mapping 2: /opt/app
        (4, message((1, 1), (2, 2), (3, 0x1234), (4, message((1, 1))), (4, message((1, 2))))),  # inlined in main
        (4, message((1, 2), (2, 1), (3, 0x10))),  # in the kernel, without a line
        (5, message((1, 1), (2, 3))),
        (5, message((1, 2), (2, 4))),
        *((6, text) for text in (b"", b"samples", b"count", b"inlined", b"main", b"[kernel.kallsyms]", b"/opt/app")),
    )
    assert read_pprof(body) == [FoldedStack("", (Frame("main"), Frame("inlined"), Frame("[unknown] [kernel.kallsyms]+0x10", True)), 5)]


def test_profiles_are_told_from_folded_text() -> None:
    assert is_pprof(pprof_of(STACKS)) and is_pprof(gzip.compress(b"x"))
    for text in (b"", b"main;x 7\n", b"\nmain;x 7\n", b"\n\n"):
        assert not is_pprof(text)
        import_text(text.decode())


def test_70_frames_and_two_leaves_stay_two_stacks() -> None:
    chain = [f"f{depth}" for depth in range(70)]
    stacks = read_pprof(pprof_of([([*chain, "x"], 7), ([*chain, "y"], 23)]))
    assert [(len(stack.frames), stack.frames[-1].name, stack.count) for stack in stacks] == [(71, "x", 7), (71, "y", 23)]


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0a\x05\x08",
        b"\x0b",
        b"\x1f\x8b\x08\x00junk",
        message((1, message((1, 1), (2, 2))), (6, b"")),  # the unit is string 2 of one
        message((2, message((1, 9), (2, 5))), (1, message((1, 0), (2, 0))), (6, b"")),  # at a location that is not there
        message((2, message((1, 1), (2, packed([5, 6])))), (1, message((1, 0), (2, 0))), (6, b"")),  # two values, one type
    ],
)
def test_what_does_not_hold_together_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_pprof(body)


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(pprof_of(STACKS))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=4)):
        whole[at] = data.draw(st.integers(0, 255))
    try:
        read_pprof(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except BadRequest as error:
        assert str(error)
